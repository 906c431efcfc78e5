"""The quota proxy as it is installed, and, if that is compiled, also interpreted."""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import yaml

import proxy
from bench.load.cold import NODE_ID
from bench.peers.peer import HOST, Running, Setting, Unavailable, free_ports, launch
from bench.peers.tls import make_certificate

TENANT: Final = "bench"
BASELINE: Final = "baseline"
"""The name in the results of the proxy of another checkout."""
# It is unreachable: the bench measures the cost of checking quotas, not of throttling.
BYTES_PER_SECOND: Final = 10**11
KINDS: Final = ("topic partition", "broker", "mutation", "usage")
"""Quotas besides the byte quotas of the tenants, and usage events."""


class QuotaProxy:
    """`quota-proxy run`, in an environment that selects the build."""

    def __init__(self, name: str, command: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self._command = command
        self._environment = environment

    def start(self, setting: Setting) -> Running:
        """Serve with a byte quota for each tenant; ready when `/readyz` is."""
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
            ready=readiness(admin),
        )
        running.admin_port = admin
        if setting.tenants:
            running.doubts = lambda: doubts(self.name, _get(admin, "/api/quotas"))
        return running


def configuration(
    setting: Setting, *, bootstrap: int, admin: int, broker_port_base: int
) -> dict[str, object]:
    """The configuration file; the tenants are the client ids "bench-0", "bench-1" and so on."""
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
    clients = [*_clients(setting.tenants, "mutation" in setting.kinds), *setting.quotas]
    limits: dict[str, object] = {}
    if "topic partition" in setting.kinds:
        rates = dict.fromkeys(("producer.byte.rate", "consumer.byte.rate"), BYTES_PER_SECOND)
        limits["topics"] = {"<default>": rates}
    if "broker" in setting.kinds:
        limits["brokers"] = {"<default>": {"total.bytes.in.per.sec.threshold": BYTES_PER_SECOND}}
    document: dict[str, object] = {
        "cluster": "bench",
        "listeners": [listener],
        "admin": {"bind": HOST, "port": admin},
        # The fake broker stores no topics.
        "quotas": {"store": "none", "algorithm": "pace", "clients": clients, **limits},
    }
    if setting.workers > 1:
        document["workers"] = setting.workers
    if "usage" in setting.kinds:
        document["usage"] = {"files": {"folder": str(setting.folder / f"usage-{bootstrap}")}}
    return document


def _clients(tenants: int, mutations: bool) -> Iterator[dict[str, object]]:
    mutation_rate = {"controller_mutation_rate": BYTES_PER_SECOND} if mutations else {}
    for number in range(tenants):
        yield {
            "entity": {"client-id": f"{TENANT}-{number}"},
            "producer_byte_rate": BYTES_PER_SECOND,
            "consumer_byte_rate": BYTES_PER_SECOND,
            **mutation_rate,
        }


def doubts(name: str, quotas: bytes) -> list[str]:
    """Reasons from `/api/quotas` to doubt the figures: quotas have to be checked, and must not throttle."""
    active = [each for each in json.loads(quotas)["quotas"] if each["entity"] == {"client-id": f"{TENANT}-0"}]
    found = []
    if not active:
        found.append(f"{name}: no byte quota of {TENANT}-0 was checked")
    if any(each["throttle_seconds"] > 0 for each in active):
        found.append(f"{name}: {TENANT}-0 was throttled; its quota must be out of reach")
    return found


def readiness(admin_port: int) -> Callable[[], bool]:
    """Return a function that says whether `/readyz` returns 200."""
    return lambda: _is_ready(admin_port)


def _is_ready(admin_port: int) -> bool:
    try:
        _get(admin_port, "/readyz")
    except OSError:
        return False
    return True


def _get(admin_port: int, path: str) -> bytes:
    """Return the body of a page of the admin port. Raises OSError if the status is not 2xx."""
    with urllib.request.urlopen(f"http://{HOST}:{admin_port}{path}", timeout=5) as reply:
        body: bytes = reply.read()
    return body


def installed() -> QuotaProxy:
    """The installed build: `proxy` if it is compiled, else `proxy-interpreted`."""
    environment = dict(os.environ)
    name = "proxy" if _compiled(environment) else "proxy-interpreted"
    return QuotaProxy(name, _command(), environment)


def interpreted(folder: Path) -> QuotaProxy:
    """Copy the sources to `folder`, without the compiled modules. Raises Unavailable if there are none."""
    if not _compiled(os.environ):
        raise Unavailable("the pure rings are not compiled here; run `make compiled`")
    source = Path(proxy.__file__).parent
    shutil.copytree(source, folder / "proxy", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    if _compiled(environment):
        raise Unavailable("the copied sources still run compiled")
    return QuotaProxy("proxy-interpreted", _command(), environment)


def baseline(checkout: Path) -> QuotaProxy:
    """The build of another checkout, where `make setup` was run: what a change is compared with. Raises
    Unavailable if it is not compiled.
    """
    command = checkout / ".venv/bin/quota-proxy"
    if not command.exists():
        raise Unavailable(f"{checkout} has no .venv/bin/quota-proxy; run `make setup` there")
    if not _compiled(os.environ, command):
        raise Unavailable(f"the pure rings of {checkout} are not compiled; run `make compiled` there")
    return QuotaProxy(BASELINE, command, dict(os.environ))


def _compiled(environment: Mapping[str, str], command: Path | None = None) -> bool:
    """Whether `quota-proxy version` says that a process in this environment runs compiled."""
    done = subprocess.run(
        [command or _command(), "version"], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Unavailable(f"`quota-proxy version` fails: {done.stderr.strip()}")
    return "interpreted" not in done.stdout


def _command() -> Path:
    path = Path(sys.executable).with_name("quota-proxy")
    if not path.exists():
        raise Unavailable("quota-proxy is not installed beside this Python; run `make setup`")
    return path
