"""The proxy in front of a cluster, on loopback ports, for as long as a `with` block lasts.

    with EmbeddedKafka() as kafka, EmbeddedProxy(kafka.bootstrap, kafka.folder, clients) as proxy:
        AIOKafkaProducer(bootstrap_servers=proxy.bootstrap)

The proxy is a process of its own, as in production: `python -m proxy run`. It ends with this process (see
`children`).
"""

import json
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

import yaml

from proxy.demo.children import Children
from proxy.demo.ports import free_port_range
from proxy.errors import QuotaProxyError

_HOST: Final = "127.0.0.1"
_BROKER_PORTS: Final = 10
"""The broker_port_count of the listener: node ids up to 9 have a port."""
_START_TIMEOUT: Final = 60.0  # seconds; a start takes one, but much longer on a busy machine
_STOP_TIMEOUT: Final = 10.0
"""Seconds between SIGTERM and SIGKILL; the proxy drains for 2 s of them at most."""
_POLL: Final = 0.05
"""Seconds between two checks whether the proxy is ready."""
_EXCERPT: Final = 20  # lines


class ProxyFailed(QuotaProxyError):
    """The proxy ended or did not get ready; the message has the end of its log."""


class EmbeddedProxy:
    """A proxy in a process of its own, with one listener for clients.

    `upstream` is the cluster's bootstrap.servers, `clients` the configuration's quotas.clients. Further keys
    are optional: `more_listeners`, such as one for replication, `more_quotas`, the other keys of `quotas`,
    and `usage`. The configuration and the log go into `folder`.
    """

    def __init__(
        self,
        upstream: str,
        folder: Path,
        clients: Sequence[Mapping[str, object]],
        more_listeners: Sequence[Mapping[str, object]] = (),
        more_quotas: Mapping[str, object] = MappingProxyType({}),
        usage: Mapping[str, object] | None = None,
    ) -> None:
        first = free_port_range(2 + _BROKER_PORTS)
        self.bootstrap = f"{_HOST}:{first}"
        """HOST:PORT for `bootstrap.servers`."""
        self.admin_port = first + 1
        self.config = folder / "quota-proxy.yaml"
        self.log = folder / "quota-proxy.log"
        self.token = secrets.token_urlsafe(12)
        """The token of the admin port, which is required for changes."""
        self._token_file = folder / "admin-token"
        self._settings: dict[str, object] = {
            "listeners": [
                {
                    "bind": _HOST,
                    "bootstrap_port": first,
                    "broker_port_base": first + 2,
                    "broker_port_count": _BROKER_PORTS,
                    "upstream": {"bootstrap": upstream.split(",")},
                },
                *more_listeners,
            ],
            "admin": {"bind": _HOST, "port": self.admin_port, "token_file": str(self._token_file)},
            "quotas": {
                "clients": [dict(each) for each in clients],
                "changes": {"without_authorizer": "loopback"},
                **more_quotas,
            },
            "limits": {"max_connections": 200, "drain_seconds": 2},
        }
        if usage is not None:
            self._settings["usage"] = dict(usage)
        self._children = Children()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        """Start the proxy and wait until it is ready. Raises ProxyFailed."""
        self._token_file.write_text(self.token)
        self.config.write_text(yaml.safe_dump(self._settings, sort_keys=False))
        command = [sys.executable, "-m", "proxy", "run", "--config", str(self.config)]
        try:
            with self.log.open("ab") as log:
                self._process = self._children.spawn(command, stdout=log, stderr=subprocess.STDOUT)
            self._await_ready()
        except BaseException:
            self._children.kill_all()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the proxy with SIGTERM, so that it drains."""
        try:
            if self._process is not None:
                self._process.terminate()
                self._process.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            print(f"The proxy did not drain within {_STOP_TIMEOUT:.0f} s and was killed", file=sys.stderr)
        finally:
            self._children.kill_all()

    @property
    def pid(self) -> int:
        """The id of the proxy's process."""
        assert self._process is not None, "__enter__() has started it"
        return self._process.pid

    def check(self) -> None:
        """Raise ProxyFailed if the proxy has ended."""
        if self._process is not None and self._process.poll() is not None:
            raise ProxyFailed(self._failure(f"ended with status {self._process.returncode}"))

    def quotas(self) -> list[dict[str, Any]]:
        """Return the active quota buckets of /api/quotas. Raises OSError if the proxy does not respond."""
        _, body = self._get("/api/quotas")
        buckets: list[dict[str, Any]] = json.loads(body)["quotas"]
        return buckets

    def _get(self, path: str) -> tuple[int, str]:
        connection = HTTPConnection(_HOST, self.admin_port, timeout=5)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except HTTPException as error:
            raise ConnectionError(f"the admin port does not speak HTTP: {error!r}") from error
        finally:
            connection.close()

    def _await_ready(self) -> None:
        """Wait until /readyz returns 200. Raises ProxyFailed."""
        deadline = time.monotonic() + _START_TIMEOUT
        page = "the admin port does not respond"
        while True:
            self.check()
            try:
                status, page = self._get("/readyz")
            except OSError:
                status = 0
            if status == 200:
                return
            if time.monotonic() > deadline:
                raise ProxyFailed(self._failure(f"was not ready within {_START_TIMEOUT:.0f} s ({page})"))
            time.sleep(_POLL)

    def _failure(self, what: str) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return f"the proxy {what}; the end of its log ({self.log}):\n" + "\n".join(lines[-_EXCERPT:])
