"""KafkaTools: runs Kafka's command line tools from the cached jars, by the names of their scripts."""

import subprocess
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Final

from proxy.demo.children import Children, reap
from proxy.demo.kafka.jars import KafkaDistribution
from proxy.errors import QuotaProxyError

JVM_FLAGS: Final = (
    # Tools run for seconds: a compiler and a collector with a fast start beat those with high throughput.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-XX:-UsePerfData",
    # The JVM writes its warnings to standard output by default, among the output of the tool.
    "-Xlog:disable",
    "-Xlog:all=warning:stderr",
)

_TOOLS: Final = "org.apache.kafka.tools."
CLASSES: Final = {
    "kafka-acls": _TOOLS + "AclCommand",
    "kafka-broker-api-versions": _TOOLS + "BrokerApiVersionsCommand",
    "kafka-client-metrics": _TOOLS + "ClientMetricsCommand",
    "kafka-cluster": _TOOLS + "ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": _TOOLS + "consumer.ConsoleConsumer",
    "kafka-console-producer": _TOOLS + "ConsoleProducer",
    "kafka-console-share-consumer": _TOOLS + "consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": _TOOLS + "consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": _TOOLS + "ConsumerPerformance",
    "kafka-delegation-tokens": _TOOLS + "DelegationTokenCommand",
    "kafka-delete-records": _TOOLS + "DeleteRecordsCommand",
    "kafka-e2e-latency": _TOOLS + "EndToEndLatency",
    "kafka-features": _TOOLS + "FeatureCommand",
    "kafka-get-offsets": _TOOLS + "GetOffsetShell",
    "kafka-groups": _TOOLS + "GroupsCommand",
    "kafka-leader-election": _TOOLS + "LeaderElectionCommand",
    "kafka-log-dirs": _TOOLS + "LogDirsCommand",
    "kafka-metadata-quorum": _TOOLS + "MetadataQuorumCommand",
    "kafka-producer-perf-test": _TOOLS + "ProducerPerformance",
    "kafka-reassign-partitions": _TOOLS + "reassign.ReassignPartitionsCommand",
    "kafka-share-consumer-perf-test": _TOOLS + "ShareConsumerPerformance",
    "kafka-share-groups": _TOOLS + "consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-streams-groups": _TOOLS + "streams.StreamsGroupCommand",
    "kafka-topics": _TOOLS + "TopicCommand",
    "kafka-transactions": _TOOLS + "TransactionsCommand",
    "kafka-verifiable-consumer": _TOOLS + "VerifiableConsumer",
    "kafka-verifiable-producer": _TOOLS + "VerifiableProducer",
}
"""The class behind each script of Kafka 4."""

_BEFORE_KAFKA_4: Final = {
    "kafka-acls": "kafka.admin.AclCommand",
    "kafka-broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
}


class KafkaToolFailed(QuotaProxyError):
    """A tool ended with an exit status other than 0; the message has the end of its output."""


class KafkaTools:
    """Runs the tools of one Kafka version; their files go into `folder`."""

    def __init__(self, distribution: KafkaDistribution, children: Children, folder: Path) -> None:
        self._distribution = distribution
        self._children = children
        self._folder = folder
        self._numbers = count(1)

    def run(
        self, tool: str, *arguments: str, input: str | None = None, timeout: float = 60.0, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a tool to its end, or for `timeout` seconds.

        `tool` is the name of a script without `.sh` (kafka-topics), or a class. Raises KafkaToolFailed if the
        tool fails and `check` is set, and subprocess.TimeoutExpired if it was killed after the timeout.
        """
        process, errors = self._start(tool, arguments)
        try:
            output, _ = process.communicate(input, timeout)
        finally:
            reap(process)
        done = subprocess.CompletedProcess(process.args, process.returncode, output, errors.read_text())
        if check and done.returncode != 0:
            said = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
            raise KafkaToolFailed(
                f"{tool} {' '.join(arguments)} ended with status {done.returncode}:\n{said}"
            )
        return done

    def start(self, tool: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a tool with pipes as its standard input and output; the caller ends it."""
        return self._start(tool, arguments)[0]

    def _start(self, tool: str, arguments: Sequence[str]) -> tuple[subprocess.Popen[str], Path]:
        flags = (*JVM_FLAGS, "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        name = class_of(tool, self._distribution.version)
        command = self._distribution.command(name, *arguments, jvm_flags=flags)
        # A file needs no reader, unlike a pipe, and is kept with the broker's log if a test fails.
        errors = self._folder / f"{next(self._numbers)}-{tool}.err"
        with errors.open("wb") as file:
            return self._children.spawn(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file
            ), errors


def class_of(tool: str, version: str) -> str:
    """Return the class of a script's name; a class is returned as it is."""
    if "." in tool:
        return tool
    if version.startswith("3."):
        return _BEFORE_KAFKA_4.get(tool, CLASSES[tool])
    return CLASSES[tool]
