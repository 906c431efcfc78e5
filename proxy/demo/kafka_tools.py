"""Kafka's own command line tools, run from the cached jars under the names of their scripts."""

import subprocess
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Final

from proxy.demo.children import Children, reap
from proxy.demo.kafka_distribution import KafkaDistribution
from proxy.errors import QuotaProxyError

JVM_FLAGS: Final = (
    # A compiler and a collector that start at once beat those that are fast in the long run.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-XX:-UsePerfData",
    # The JVM's own warnings go to standard output by default, where they would spoil a tool's.
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
    """A tool ended with an exit status other than 0; str() has the end of what it said."""


class KafkaTools:
    """Runs tools of one Kafka version; what they leave goes into `folder`."""

    def __init__(self, distribution: KafkaDistribution, children: Children, folder: Path) -> None:
        self._distribution = distribution
        self._children = children
        self._folder = folder
        self._numbers = count(1)

    def run(
        self, tool: str, *arguments: str, input: str | None = None, timeout: float = 60.0, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Runs a tool to its end; `timeout` in seconds, as in `subprocess.run`.

        `tool` is a script's name without its `.sh` (kafka-topics), or a class. Raises KafkaToolFailed when it
        fails (unless `check` is off), and subprocess.TimeoutExpired when it was killed for taking too long.
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
        """Starts a tool that the caller talks to and ends: its standard input and output are pipes."""
        return self._start(tool, arguments)[0]

    def _start(self, tool: str, arguments: Sequence[str]) -> tuple[subprocess.Popen[str], Path]:
        flags = (*JVM_FLAGS, "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        name = class_of(tool, self._distribution.version)
        command = self._distribution.command(name, *arguments, jvm_flags=flags)
        # A file, not a pipe: nobody need read it, and it stays with the broker's log when a test fails.
        errors = self._folder / f"{next(self._numbers)}-{tool}.err"
        with errors.open("wb") as file:
            return self._children.spawn(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file
            ), errors


def class_of(tool: str, version: str) -> str:
    """The class to run for a script's name; a class stands for itself."""
    if "." in tool:
        return tool
    if version.startswith("3."):
        return _BEFORE_KAFKA_4.get(tool, CLASSES[tool])
    return CLASSES[tool]
