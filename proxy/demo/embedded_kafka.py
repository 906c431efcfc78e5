"""A real Apache Kafka on loopback ports, for as long as a `with` block lasts.

    with EmbeddedKafka(brokers=3) as kafka:
        kafka.run_tool("kafka-topics", "--bootstrap-server", kafka.bootstrap, "--create", "--topic", "orders")

The cluster uses KRaft, and node ids start at 1. With three or more brokers, nodes 1 to 3 are also
controllers, so the cluster survives the restart of any one node; with fewer, node 1 is the only controller.
Every broker has a PLAINTEXT listener for clients and an INTERNAL listener for the other brokers.

The processes end with this one, even if it is killed (see `children`). All files are in one temporary folder.
It is removed at the end, unless the block ends with an error: then it is kept, and its path is printed.
"""

import atexit
import shutil
import subprocess
import sys
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from proxy.demo.children import Children
from proxy.demo.kafka import jars
from proxy.demo.kafka import tools as kafka_tools
from proxy.demo.kafka.broker_probe import live_brokers
from proxy.demo.kafka.broker_properties import CLIENTS, LISTENERS, BrokerNode, server_properties
from proxy.demo.ports import free_ports
from proxy.demo.run_folder import RunFolder
from proxy.errors import QuotaProxyError

_START_TIMEOUT: Final = 120.0  # seconds; a start takes two, but much longer on a busy machine
_STOP_TIMEOUT: Final = 60.0
"""Seconds between SIGTERM and SIGKILL."""
_POLL: Final = 0.05
"""Seconds between two checks whether a broker is ready."""
_EXCERPT: Final = 20  # lines


class BrokerFailed(QuotaProxyError):
    """A broker ended or did not get ready; the message has the errors in its log."""


class EmbeddedKafka:
    """A cluster of `brokers` nodes of one Kafka version.

    properties         properties of every broker, as in server.properties
    broker_properties  properties of single brokers, by node id; they override `properties`
    ports              client ports by node id; other brokers get any free port
    advertised         HOST:PORT by node id and listener name (PLAINTEXT, INTERNAL), such as those of a proxy
    listeners          further listeners of every broker for clients: security protocol by name
    jvm_flags          JVM flags of the brokers, after those for a quick start
    """

    def __init__(
        self,
        brokers: int = 1,
        version: str = jars.DEFAULT_VERSION,
        *,
        properties: Mapping[str, str] | None = None,
        broker_properties: Mapping[int, Mapping[str, str]] | None = None,
        ports: Mapping[int, int] | None = None,
        advertised: Mapping[int, Mapping[str, str]] | None = None,
        listeners: Mapping[str, str] | None = None,
        jvm_flags: Sequence[str] = (),
    ) -> None:
        self.version = version
        self._run_folder = RunFolder()
        self.keep_folder = False
        """Set to True to keep the logs and the data at the end."""
        self._properties = properties or {}
        self._broker_properties = broker_properties or {}
        self._advertised = advertised or {}
        self._listeners = dict(listeners or {})
        self._jvm_flags = tuple(jvm_flags)
        self._nodes = {node_id: self._place(node_id, ports or {}) for node_id in range(1, brokers + 1)}
        self._running: dict[int, subprocess.Popen[str]] = {}
        self._children = Children()

    def _place(self, node_id: int, fixed: Mapping[int, int]) -> BrokerNode:
        names = (*LISTENERS, *self._listeners)
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        if node_id in fixed:
            ports[CLIENTS] = fixed[node_id]
        return BrokerNode(node_id, ports, self.folder / f"node-{node_id}")

    @property
    def folder(self) -> Path:
        """The folder of the brokers' logs and data."""
        return self._run_folder.path

    def __enter__(self) -> Self:
        """Format and start every broker. Raises BrokerFailed, and whatever `jars.ensure`
        raises.
        """
        atexit.register(self.close)
        try:
            self._run_folder.create()
            self._distribution = jars.ensure(self.version)
            self._tools = kafka_tools.KafkaTools(self._distribution, self._children, self.folder)
            self._format()
            for node_id in self._nodes:
                self._launch(node_id)
            self._await_ready()
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # Ctrl-C and exit() are no failures, and need no log to explain them.
        self.keep_folder = self.keep_folder or (kind is not None and issubclass(kind, Exception))
        self.close()

    def close(self) -> None:
        """Kill all processes, and remove the folder unless it is to be kept."""
        atexit.unregister(self.close)
        self._children.kill_all()
        self._running.clear()
        if self.keep_folder:
            print(f"Kafka's logs are kept in {self.folder}", file=sys.stderr)
            self._run_folder.keep()
        else:
            self._run_folder.remove()

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of every broker's client listener, for `bootstrap.servers`."""
        return ",".join(f"127.0.0.1:{node.ports[CLIENTS]}" for node in self._nodes.values())

    @property
    def node_ids(self) -> Iterable[int]:
        """Every broker, running or not."""
        return self._nodes.keys()

    def port(self, node_id: int, listener: str = CLIENTS) -> int:
        """The port of the broker's listener, chosen before the broker starts."""
        return self._nodes[node_id].ports[listener]

    def pid(self, node_id: int) -> int:
        """The process id of a running broker."""
        return self._running[node_id].pid

    def log(self, node_id: int) -> Path:
        """The broker's log of all its runs."""
        return self._nodes[node_id].log

    def start(self, node_id: int) -> None:
        """Start a stopped broker with its ports and data, and wait until it is ready.

        The broker is fenced until the session of its last run expires (`broker.session.timeout.ms`).
        """
        self._launch(node_id)
        self._await_ready()

    def stop(self, node_id: int) -> None:
        """Shut a broker down (SIGTERM); it moves its leaders to other brokers first."""
        process = self._running.pop(node_id)
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            raise BrokerFailed(self._failure(node_id, f"did not stop within {_STOP_TIMEOUT:.0f} s")) from None

    def kill(self, node_id: int) -> None:
        """Kill a broker (SIGKILL), as in a crash."""
        process = self._running.pop(node_id)
        process.kill()
        process.wait()

    def move(self, node_id: int) -> None:
        """Give a stopped broker another port for clients, at which it starts."""
        node = self._nodes[node_id]
        (port,) = free_ports(1)
        self._nodes[node_id] = moved = replace(node, ports={**node.ports, CLIENTS: port})
        self._write_properties(moved)

    def run_tool(
        self, tool: str, *arguments: str, input: str | None = None, timeout: float = 60.0, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's tools; see `KafkaTools.run`."""
        return self._tools.run(tool, *arguments, input=input, timeout=timeout, check=check)

    def start_tool(self, tool: str, *arguments: str) -> subprocess.Popen[str]:
        """Start one of Kafka's tools; see `KafkaTools.start`. The end of the cluster kills it."""
        return self._tools.start(tool, *arguments)

    def _format(self) -> None:
        """Write every server.properties, and format every `log.dirs`: the tool formats one, the rest are
        copies.
        """
        nodes = list(self._nodes.values())
        for node in nodes:
            node.folder.mkdir()
            self._write_properties(node)
        first, *others = nodes
        cluster_id = _random_id()
        tool = ("kafka-storage", "format")
        try:
            self.run_tool(*tool, "-t", cluster_id, "-c", str(first.properties_file), timeout=_START_TIMEOUT)
        except subprocess.TimeoutExpired:
            busy = f"{' '.join(tool)} did not end within {_START_TIMEOUT:.0f} s; the machine may be too busy"
            raise BrokerFailed(busy) from None
        for node in others:
            shutil.copytree(first.data, node.data)
            meta = {
                "version": "1",
                "cluster.id": cluster_id,
                "node.id": str(node.node_id),
                "directory.id": _random_id(),
            }
            (node.data / "meta.properties").write_text(
                "".join(f"{key}={value}\n" for key, value in meta.items())
            )

    def _write_properties(self, node: BrokerNode) -> None:
        overrides = {**self._properties, **self._broker_properties.get(node.node_id, {})}
        advertised = self._advertised.get(node.node_id, {})
        nodes = list(self._nodes.values())
        text = server_properties(node, nodes, advertised, overrides, self._listeners)
        node.properties_file.write_text(text)

    def _launch(self, node_id: int) -> None:
        node = self._nodes[node_id]
        flags = (
            *kafka_tools.JVM_FLAGS,
            *("-Xms128m", "-Xmx512m"),
            # Compression libraries unpack into it, and a killed broker does not clean up.
            f"-Djava.io.tmpdir={node.folder}",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
            *self._jvm_flags,
        )
        command = self._distribution.command("kafka.Kafka", str(node.properties_file), jvm_flags=flags)
        with node.log.open("ab") as log:
            self._running[node_id] = self._children.spawn(command, stdout=log, stderr=subprocess.STDOUT)

    def _await_ready(self) -> None:
        """Wait until every running broker serves clients and lists all running brokers."""
        deadline = time.monotonic() + _START_TIMEOUT
        waiting = list(self._running)
        while waiting:
            node_id = waiting[0]
            if self._running[node_id].poll() is not None:
                status = self._running.pop(node_id).returncode
                raise BrokerFailed(self._failure(node_id, f"ended with status {status}"))
            if self._is_ready(node_id):
                waiting.pop(0)
            elif time.monotonic() > deadline:
                raise BrokerFailed(self._failure(node_id, f"was not ready within {_START_TIMEOUT:.0f} s"))
            else:
                time.sleep(_POLL)

    def _is_ready(self, node_id: int) -> bool:
        try:
            return live_brokers(self.port(node_id), timeout=1.0) >= self._running.keys()
        except OSError:
            return False

    def _failure(self, node_id: int, what: str) -> str:
        lines = self.log(node_id).read_text(errors="replace").splitlines()
        # A failing broker logs a long shutdown after the error, so the end of the log rarely has the reason.
        errors = [line for line in lines if " ERROR " in line or "Exception: " in line]
        excerpt = "\n".join((errors or lines)[-_EXCERPT:])
        return (
            f"Kafka {self.version}'s broker {node_id} {what}; from its log ({self.log(node_id)}):\n{excerpt}"
        )


def _random_id() -> str:
    """An id in the format of Kafka's Uuid. None begins with a dash, which a tool would take for an option."""
    while True:
        spelt = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not spelt.startswith("-"):
            return spelt
