"""The quota proxy itself, as it is installed, and interpreted where the installed one is compiled."""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import yaml

import proxy
from bench.load.cold import NODE_ID
from bench.peers.peer import HOST, Running, Setting, Unavailable, free_ports, launch
from bench.peers.tls import make_certificate

TENANT: Final = "bench"
# No tenant comes near it: what is measured is the price of asking, not of holding anything back.
BYTES_PER_SECOND: Final = 10**11


class QuotaProxy:
    """`quota-proxy run` in an environment that decides which build is imported."""

    def __init__(self, name: str, command: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self._command = command
        self._environment = environment

    def start(self, setting: Setting) -> Running:
        """Serves with a byte quota for each of the tenants; ready once `/readyz` says so."""
        bootstrap, admin, port = free_ports(3)
        file = setting.folder / f"{self.name}.yaml"
        document = configuration(setting, bootstrap=bootstrap, admin=admin, broker_port_base=port - NODE_ID)
        file.write_text(yaml.safe_dump(document, sort_keys=False))
        running = launch(
            self.name,
            [str(self._command), "run", "--config", str(file)],
            setting,
            port,
            environment=self._environment,
            ready=lambda: _is_ready(admin),
        )
        running.admin_port = admin
        if setting.tenants:
            running.doubts = lambda: doubts(self.name, _get(admin, "/api/quotas"))
        return running


def configuration(
    setting: Setting, *, bootstrap: int, admin: int, broker_port_base: int
) -> dict[str, object]:
    """The configuration file's content: the tenants are client ids "bench-0", "bench-1" and so on."""
    listener: dict[str, object] = {
        "name": "clients",
        "bind": HOST,
        "advertised_host": HOST,
        "bootstrap_port": bootstrap,
        "broker_port_base": broker_port_base,
        "upstream": {"bootstrap": [f"{HOST}:{setting.broker_port}"]},
    }
    if setting.tls:
        made = make_certificate(setting.folder)
        listener["tls"] = {"certificate": str(made.certificate), "key": str(made.key)}
    clients = [*_clients(setting.tenants), *setting.quotas]
    document: dict[str, object] = {
        "cluster": "bench",
        "listeners": [listener],
        "admin": {"bind": HOST, "port": admin},
        # The broker has canned answers, and keeps no topic.
        "quotas": {"store": "none", "algorithm": "pace", "clients": clients},
    }
    return document


def _clients(tenants: int) -> Iterator[dict[str, object]]:
    for number in range(tenants):
        yield {
            "entity": {"client-id": f"{TENANT}-{number}"},
            "producer_byte_rate": BYTES_PER_SECOND,
            "consumer_byte_rate": BYTES_PER_SECOND,
        }


def doubts(name: str, quotas: bytes) -> list[str]:
    """What `/api/quotas` says that spoils the figures: quotas must have been asked, and held nobody back."""
    active = [each for each in json.loads(quotas)["quotas"] if each["entity"] == {"client-id": f"{TENANT}-0"}]
    found = []
    if not active:
        found.append(f"{name}: no byte quota of {TENANT}-0 was asked")
    if any(each["throttle_seconds"] > 0 for each in active):
        found.append(f"{name}: {TENANT}-0 was throttled; its quota must be out of reach")
    return found


def _is_ready(admin_port: int) -> bool:
    try:
        _get(admin_port, "/readyz")
    except OSError:
        return False
    return True


def _get(admin_port: int, path: str) -> bytes:
    """The body of a page of the admin port; OSError where it is not there, or not with status 2xx."""
    with urllib.request.urlopen(f"http://{HOST}:{admin_port}{path}", timeout=5) as reply:
        body: bytes = reply.read()
    return body


def installed() -> QuotaProxy:
    """The build that is installed: `proxy` where it is compiled, else `proxy-interpreted`."""
    environment = dict(os.environ)
    name = "proxy" if _compiled(environment) else "proxy-interpreted"
    return QuotaProxy(name, _command(), environment)


def interpreted(folder: Path) -> QuotaProxy:
    """The same sources in `folder`, without what was compiled from them."""
    if not _compiled(os.environ):
        raise Unavailable("the pure rings are not compiled here; `make compiled` does it")
    source = Path(proxy.__file__).parent
    shutil.copytree(source, folder / "proxy", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    if _compiled(environment):
        raise Unavailable("the copied sources still run compiled")
    return QuotaProxy("proxy-interpreted", _command(), environment)


def _compiled(environment: Mapping[str, str]) -> bool:
    """Whether a process in this environment runs compiled, asked of `quota-proxy version`."""
    done = subprocess.run(
        [_command(), "version"], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Unavailable(f"`quota-proxy version` fails: {done.stderr.strip()}")
    return "interpreted" not in done.stdout


def _command() -> Path:
    path = Path(sys.executable).with_name("quota-proxy")
    if not path.exists():
        raise Unavailable("quota-proxy is not installed beside this Python; `make setup` does it")
    return path
