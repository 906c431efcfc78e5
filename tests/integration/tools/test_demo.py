"""The demo as users run it: it shows tenants at their quotas, and no process outlives it."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka

SECONDS = 120.0
UNDER_WAY = "MiB/s"
"""The heading of the table of rates: from then on all tenants send and read as fast as they may."""


@pytest.fixture
def demo(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """`quota-proxy demo` with the options of the parameter, and with its output in pipes."""
    command = [str(Path(sys.executable).with_name("quota-proxy")), "demo", *getattr(request, "param", [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def read_to(demo: subprocess.Popen[str], text: str) -> None:
    """Read the output up to a line with this text."""
    assert demo.stdout is not None
    for line in demo.stdout:
        if text in line:
            return
    raise AssertionError(f"the demo never said {text!r}, but: {demo.communicate()[1]}")


def children(demo: subprocess.Popen[str]) -> dict[str, int]:
    """The process ids of Kafka and the proxy."""
    found = {}
    for thread in Path(f"/proc/{demo.pid}/task").glob("*/children"):
        for child in map(int, thread.read_text().split()):
            command = Path(f"/proc/{child}/cmdline").read_text().split("\0")
            found["kafka" if "kafka.Kafka" in command else "proxy" if "run" in command else "other"] = child
    return found


def runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.timed
@pytest.mark.parametrize("demo", [["--keep"]], indirect=True)
def test_every_tenant_gets_its_quota_and_goes_on(demo: subprocess.Popen[str]) -> None:
    read_to(demo, "The proxy serves at ")
    family = children(demo)
    assert set(family) == {"kafka", "proxy"}
    assert demo.stdout is not None
    lines = []
    for line in demo.stdout:
        lines.append(line)
        if "bootstrap.servers=" in line:
            break
    output = "".join(lines)
    [admin] = re.findall(r"page +(http\S+)", output)
    change = next(line.split() for line in lines if " quotas set " in line)[1:]
    assert change[0].endswith("quota-proxy")
    subprocess.run(change, check=True, timeout=SECONDS)

    def alice_has_the_new_limit() -> bool:
        with urllib.request.urlopen(f"{admin}api/quotas", timeout=10) as response:
            rows = json.load(response)["quotas"]
        return any(row["entity"] == {"client-id": "alice"} and row["limit"] == 3145728 for row in rows)

    wait_until(alice_has_the_new_limit, "the new limit of alice, who continues")
    [token] = re.findall(r"token for changes: ([\w-]+)\)", output)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = json.dumps({"entity": {"client-id": "alice"}, "back_to_file": True}).encode()
    with urllib.request.urlopen(
        urllib.request.Request(f"{admin}api/change", body, headers), timeout=60
    ) as changed:
        assert json.load(changed) == {"changed": True}
    demo.send_signal(signal.SIGINT)
    _, errors = demo.communicate(timeout=SECONDS)
    assert demo.returncode == 0, output + errors
    assert errors == ""
    assert output.isascii()
    rows = [re.split(r"\s*\|\s*", line)[1:5] for line in output.splitlines() if line.startswith("|")]
    assert [row[:3] for row in rows[1:]] == [
        ["alice", "produces", "1.00"],
        ["bob", "produces", "2.00"],
        ["bob", "consumes", "1.00"],
        ["carol", "produces", "none"],
        ["carol", "consumes", "none"],
    ]
    for _, _, quota, got in rows[1:4]:
        assert float(got) == pytest.approx(float(quota), rel=0.1)
    for _, _, _, got in rows[4:]:
        assert float(got) > 1.1, "more than the quota of one who has one"
    assert "  - {entity: {client-id: alice}, producer_byte_rate: 1048576}\n" in output
    assert not any(map(runs, family.values()))


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_nothing_outlives_it(demo: subprocess.Popen[str], number: signal.Signals, status: int) -> None:
    read_to(demo, UNDER_WAY)
    family = children(demo)
    assert set(family) == {"kafka", "proxy"}
    demo.send_signal(number)
    _, errors = demo.communicate(timeout=SECONDS)
    assert demo.returncode == status
    assert errors == ("Stopped; all processes have ended.\n" if status > 0 else "")
    wait_until(lambda: not any(map(runs, family.values())), "the end of Kafka and the proxy")


def test_a_proxy_that_dies_is_told(demo: subprocess.Popen[str]) -> None:
    read_to(demo, UNDER_WAY)
    family = children(demo)
    subprocess.run(["kill", "-KILL", str(family["proxy"])], check=True)
    _, errors = demo.communicate(timeout=SECONDS)
    assert demo.returncode == 1
    assert f" status {-signal.SIGKILL};" in errors
    wait_until(lambda: not runs(family["kafka"]), "the end of Kafka")
