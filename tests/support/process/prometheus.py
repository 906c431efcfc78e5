"""A real Prometheus that scrapes a proxy (Debian: the package prometheus)."""

import http.client
import json
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlencode

import yaml

from proxy.demo.children import Children
from proxy.demo.ports import free_ports
from tests.support.waiting import wait_until

PROMETHEUS: Final = shutil.which("prometheus")
HOST: Final = "127.0.0.1"
JOB: Final = "quota-proxy"
STARTS_WITHIN_SECONDS: Final = 60.0


class Prometheus:
    """Scrapes a proxy's admin port every second, until the block ends."""

    def __init__(self, folder: Path, admin_port: int) -> None:
        self._folder: Final = folder
        self._admin_port: Final = admin_port
        self._children: Final = Children()
        (self._port,) = free_ports(1)

    def __enter__(self) -> Self:
        assert PROMETHEUS is not None, "a test that has none is skipped"
        target = {"targets": [f"{HOST}:{self._admin_port}"]}
        file = self._folder / "prometheus.yaml"
        scrape = {"job_name": JOB, "static_configs": [target]}
        file.write_text(yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [scrape]}))
        options = {
            "config.file": file,
            "storage.tsdb.path": self._folder / "data",
            "web.listen-address": f"{HOST}:{self._port}",
        }
        command = [PROMETHEUS, *(f"--{name}={value}" for name, value in options.items())]
        with (self._folder / "prometheus.log").open("wb") as log:
            self._children.spawn(command, stdout=log, stderr=log)
        wait_until(self._scrapes, "a scrape of the proxy", STARTS_WITHIN_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._children.kill_all()

    def _scrapes(self) -> bool:
        try:
            return any(found["value"][1] == "1" for found in self.query(f'up{{job="{JOB}"}}'))
        except OSError:
            return False

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The vector that an expression evaluates to now. Fails if Prometheus does not accept it."""
        connection = http.client.HTTPConnection(HOST, self._port, timeout=10)
        try:
            connection.request("GET", "/api/v1/query?" + urlencode({"query": expression}))
            response = json.loads(connection.getresponse().read())
        except json.JSONDecodeError:
            return []  # it has not loaded its data yet
        finally:
            connection.close()
        assert response["status"] == "success", response
        found: list[dict[str, Any]] = response["data"]["result"]
        return found
