"""The proxy as users run it: the command, a configuration file, and the admin port."""

import http.client
import json
import re
import signal
import socket
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from proxy.demo.children import Children
from proxy.demo.ports import free_port_range
from tests.support.process import forks, pass_sockets
from tests.support.waiting import wait_until

Quotas = Sequence[Mapping[str, object]]
HOST: Final = "127.0.0.1"
BROKERS: Final = 10
"""Node ids 0 to 9 have a port."""
STOP_SECONDS: Final = 40.0
COMMAND: Final = Path(sys.executable).with_name("quota-proxy")
_PAGE: Final = Path(__file__).parents[3] / "docs/metrics.md"
DOCUMENTED: Final = frozenset(
    name.removesuffix("_total") for name in re.findall(r"`(quota_proxy_\w+)`", _PAGE.read_text())
)
# Those of Prometheus' Python client are on the page by their prefixes.
_FAMILIES: Final = re.compile(r"^# TYPE (?!process_|python_)(\S+) ", re.MULTILINE)


def total(samples: Iterable[Sample], **labels: str) -> float:
    """The sum of the samples with these labels."""
    return sum(found.value for found in samples if labels.items() <= found.labels.items())


class Process(Protocol):
    """A program, or a fork: what both have."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, number: int, /) -> None: ...

    def kill(self) -> None: ...


class ProxyProcess:
    """`quota-proxy run` in front of the cluster at `upstream` (HOST:PORT, separated by commas).

    quotas    the file's quotas.clients
    settings  further top-level keys of the file
    listener  further keys of its first listener
    more_listeners  further listeners
    fork      whether it starts as a fork, without the imports of a program
    """

    def __init__(
        self,
        folder: Path,
        upstream: str,
        quotas: Quotas = (),
        *,
        settings: Mapping[str, Any] | None = None,
        listener: Mapping[str, Any] | None = None,
        more_listeners: Sequence[Mapping[str, Any]] = (),
        fork: bool = False,
    ) -> None:
        first = free_port_range(BROKERS + 2)
        self.bootstrap_port = first
        self.admin_port = first + 1
        self._broker_port_base = first + 2
        self._folder = folder
        self._children = Children()
        self._process: Process | None = None
        self._forks: list[forks.Forked] | None = [] if fork and sys.platform == "linux" else None
        self._passed: list[socket.socket] = []
        own = {
            "name": "clients",
            "bootstrap_port": self.bootstrap_port,
            "broker_port_base": self._broker_port_base,
            "broker_port_count": BROKERS,
            "upstream": {"bootstrap": upstream.split(",")},
        }
        config: dict[str, Any] = {
            "cluster": "tests",
            "listeners": [{**own, **(listener or {})}, *more_listeners],
            "admin": {"port": self.admin_port},
            "quotas": {"clients": list(quotas), "changes": {"without_authorizer": "loopback"}},
        }
        for key, value in (settings or {}).items():
            config[key] = {**config.get(key, {}), **value} if isinstance(value, dict) else value
        if config["quotas"].get("store") != "none":
            # Proxies of other tests in front of the same Kafka would have a part of each limit.
            config.setdefault("sharing", {"topic": f"__quota_proxy_shares_{self.bootstrap_port}"})
        folder.mkdir(parents=True, exist_ok=True)
        self.config_file = folder / "quota-proxy.yaml"
        self.write_config(config)
        self.log_file = folder / "proxy.log"

    def launch(self) -> None:
        """Start the process."""
        passed = [each.fileno() for each in self._passed]
        arguments = ["run", "--config", str(self.config_file)]
        if self._forks is not None:
            with self.log_file.open("ab") as log:
                self._process = forks.start(arguments, log)
            self._forks.append(self._process)
            return
        command = [str(COMMAND), *arguments]
        if passed:
            # Isolated, it starts as quickly as a service manager forks.
            isolated = [sys.executable, "-I", "-S", pass_sockets.__file__]
            command = [*isolated, ",".join(map(str, passed)), *command]
        with self.log_file.open("ab") as log:
            self._process = self._children.spawn(command, stdout=log, stderr=log, pass_fds=passed)

    def hold_ports(self) -> None:
        """Listen at the ports for clients, as a service manager does; each process gets the sockets."""
        ports = (self.bootstrap_port, *self.broker_ports)
        self._passed = [socket.create_server((HOST, port)) for port in ports]

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Replace the configuration file as a whole: a running proxy never reads a part of it."""
        written = self.config_file.with_suffix(".new")
        written.write_text(json.dumps(config, indent=2))  # JSON is YAML
        written.replace(self.config_file)

    def start(self) -> Self:
        """Start the process, and wait until its admin port responds."""
        self.launch()
        wait_until(self._responds, f"the proxy's admin port; its log:\n{self.log}")
        return self

    def _responds(self) -> bool:
        status = self.process.poll()
        assert status is None, f"the proxy ended with status {status}; its log:\n{self.log}"
        try:
            return self.get("/healthz")[0] == 200
        except OSError:
            return False

    def wait_ready(self) -> Self:
        """Wait until clients can be served."""
        wait_until(lambda: self.get("/readyz")[0] == 200, "the proxy's being ready")
        return self

    def __enter__(self) -> Self:
        return self.start().wait_ready()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        for each in self._passed:
            each.close()

    def kill(self) -> None:
        """Kill the process if it runs."""
        self._children.kill_all()
        for each in self._forks or ():
            each.kill()
            each.wait()

    @property
    def process(self) -> Process:
        assert self._process is not None, "not started"
        return self._process

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.process.send_signal(signal.SIGTERM)

    def stop(self) -> int:
        """Send SIGTERM and wait for the end; the exit status."""
        self.terminate()
        return self.process.wait(STOP_SECONDS)

    # Ports

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for bootstrap.servers."""
        return f"{HOST}:{self.bootstrap_port}"

    def broker_port(self, node_id: int) -> int:
        """The port at which clients reach a broker."""
        return self._broker_port_base + node_id

    def listens_for(self, node_id: int) -> bool:
        """Whether the broker's port accepts connections."""
        try:
            socket.create_connection((HOST, self.broker_port(node_id)), timeout=5).close()
        except ConnectionRefusedError:
            return False
        return True

    @property
    def broker_ports(self) -> range:
        """The ports of all brokers."""
        return range(self._broker_port_base, self._broker_port_base + BROKERS)

    def rejects_clients(self) -> bool:
        """Whether the bootstrap port is closed. After a start it listens for seconds before it is served."""
        with socket.socket() as client:
            return client.connect_ex((HOST, self.bootstrap_port)) != 0

    # Log and admin port

    @property
    def peak_memory(self) -> int:
        """The peak resident memory in bytes (Linux)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    @property
    def log(self) -> str:
        return self.log_file.read_text() if self.log_file.exists() else ""

    def log_lines(self, pattern: str) -> list[str]:
        """The lines of the log that match this regular expression."""
        return [line for line in self.log.splitlines() if re.search(pattern, line)]

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Return status and body of a page of the admin port. Raises OSError if it does not respond."""
        return self._get(path, headers)[1:]

    def _get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[float, int, str]:
        """As `get`, with the time (time.monotonic) at which the request was sent first."""
        connection = http.client.HTTPConnection(HOST, self.admin_port, timeout=10)
        try:
            connection.connect()
            sent_at = time.monotonic()
            connection.request("GET", path, headers=dict(headers or {}))
            response = connection.getresponse()
            return sent_at, response.status, response.read().decode()
        finally:
            connection.close()

    def _scrape(self) -> tuple[float, str]:
        """The time at which /metrics was requested, and its text. Each family in it must be documented."""
        sent_at, status, text = self._get("/metrics")
        assert status == 200
        families = {name.removesuffix("_total") for name in _FAMILIES.findall(text)}
        assert families <= DOCUMENTED, families - DOCUMENTED
        return sent_at, text

    def metrics(self) -> dict[str, Metric]:
        """The families of /metrics by name (a counter's without _total)."""
        return {family.name: family for family in text_string_to_metric_families(self._scrape()[1])}

    def samples(self, name: str) -> tuple[float, list[Sample]]:
        """The samples of /metrics with this name, and the time (time.monotonic) before which none of them was
        read: when the request was sent. A busy machine may receive and parse the response late.
        """
        sent_at, text = self._scrape()
        # The whole page takes several times as long to parse.
        lines = "".join(line + "\n" for line in text.splitlines() if re.match(rf"{name}[{{ ]", line))
        return sent_at, [each for family in text_string_to_metric_families(lines) for each in family.samples]

    def metric(self, sample: str, **labels: str) -> float:
        """The sum of the samples with this name and these labels; 0 if there are none."""
        return total(self.samples(sample)[1], **labels)

    def buckets(self) -> list[dict[str, Any]]:
        """The buckets that /api/quotas shows."""
        status, text = self.get("/api/quotas")
        assert status == 200
        shown: list[dict[str, Any]] = json.loads(text)["quotas"]
        return shown


class ProxyRunner:
    """Starts proxies, each with its own folder, and stops those that still run."""

    def __init__(self, folder: Path, *, fork: bool = False) -> None:
        self.proxies: Final[list[ProxyProcess]] = []
        self._folder = folder
        self._fork = fork

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for proxy in self.proxies:
            proxy.__exit__(kind, error, trace)

    def prepare(self, upstream: str, quotas: Quotas = (), **more: Any) -> ProxyProcess:
        """A proxy that is not started yet; arguments as those of ProxyProcess."""
        folder = self._folder / str(len(self.proxies))
        proxy = ProxyProcess(folder, upstream, quotas, **{"fork": self._fork, **more})
        self.proxies.append(proxy)
        return proxy

    def __call__(self, upstream: str, quotas: Quotas = (), **more: Any) -> ProxyProcess:
        """A proxy that serves clients."""
        return self.prepare(upstream, quotas, **more).start().wait_ready()
