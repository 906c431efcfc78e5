"""The supervisor and its workers as users run them, with a cluster that is away."""

import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.demo.ports import free_port_range
from tests.support.process.proxy_process import HOST, STOP_SECONDS, ProxyProcess
from tests.support.process.workers import running, started
from tests.support.waiting import wait_until


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[ProxyProcess]:
    settings = {"workers": 2, "quotas": {"store": "none"}, "limits": {"drain_seconds": 1}}
    upstream = f"{HOST}:{free_port_range(1)}"
    process = ProxyProcess(tmp_path, upstream, settings=settings)
    yield process
    process.__exit__(None, None, None)


def wait_replying(proxy: ProxyProcess, count: int = 2) -> None:
    """Wait until `count` workers say why they are not ready."""
    wait_until(lambda: json.loads(proxy.get("/readyz")[1])["problems"], "problems")

    def replying() -> bool:
        problems = json.loads(proxy.get("/readyz")[1])["problems"]
        return sum("clients: " in problem for problem in problems) == count

    wait_until(replying, f"{count} workers that reply")


def test_a_killed_worker_is_replaced_and_sigterm_ends_all(proxy: ProxyProcess) -> None:
    proxy.start()
    wait_replying(proxy)
    assert proxy.get("/readyz")[0] == 503
    first, second = started(proxy)
    lag_count = "quota_proxy_event_loop_lag_seconds_count"
    wait_until(lambda: proxy.metric(lag_count) > 0, "a measured lag")
    lags = proxy.metric(lag_count)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: proxy.metric("quota_proxy_worker_restarts_total") == 1, "a restart")
    assert proxy.metric(lag_count) >= lags
    wait_replying(proxy)
    third = started(proxy)[2]
    assert proxy.metric("quota_proxy_workers") == 2
    assert not running(first)
    assert proxy.log_lines("worker 1: ")
    proxy.process.send_signal(signal.SIGHUP)
    proxy.config_file.write_text("listeners: 1\n")
    wait_until(lambda: json.loads(proxy.get("/readyz")[1])["warnings"], "a warning about the file")
    assert running(second)
    assert running(third)
    assert proxy.stop() == 0
    assert not running(second)
    assert not running(third)


def test_the_first_workers_import_nothing_and_their_successors_load_the_installed_version(
    proxy: ProxyProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start takes the time of one import, whatever the number of workers."""
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")

    def imports() -> int:
        return len(proxy.log_lines(r"^import time: .*\| +proxy\.server\.app$"))

    proxy.start()
    wait_replying(proxy)
    assert imports() == 1
    os.kill(started(proxy)[0], signal.SIGKILL)
    wait_until(lambda: len(started(proxy)) == 3, "another worker")
    wait_replying(proxy)
    assert imports() == 2


def test_workers_that_cannot_start_are_tried_again_ever_later(proxy: ProxyProcess) -> None:
    proxy.start()
    wait_replying(proxy)
    proxy.config_file.write_text("listeners: 1\n")
    os.kill(started(proxy)[0], signal.SIGKILL)
    pauses: list[float] = []

    def paused_thrice() -> bool:
        pauses[:] = [float(found) for found in re.findall(r"worker 1 .* in ([\d.]+) s", proxy.log)]
        return len(pauses) >= 3

    wait_until(paused_thrice, "three ends")
    assert pauses == sorted(pauses)
    assert pauses[-1] > pauses[-2]
    wait_until(proxy.rejects_clients, "the rejection of clients, which no worker serves")
    assert running(started(proxy)[1])
    proxy.terminate()
    assert proxy.process.wait(STOP_SECONDS) == 0


def test_workers_end_with_a_killed_supervisor(proxy: ProxyProcess) -> None:
    """Whatever the shutdown waits for, they leave the ports to its successor."""
    config = json.loads(proxy.config_file.read_text())
    config["limits"] |= {"shutdown_delay_seconds": 60}
    proxy.write_config(config)
    proxy.start()
    wait_replying(proxy)
    first = started(proxy)
    proxy.process.kill()
    for pid in first:
        wait_until(lambda pid=pid: not running(pid), "the end of a worker")
    proxy.start()
    wait_replying(proxy)


def test_two_signals_that_a_worker_handles_together_end_the_delay(proxy: ProxyProcess) -> None:
    """A worker on a busy machine may handle the first one late."""
    config = json.loads(proxy.config_file.read_text())
    config["limits"] |= {"shutdown_delay_seconds": 600}
    proxy.write_config(config)
    proxy.start()
    wait_replying(proxy)
    for pid in started(proxy):
        os.kill(pid, signal.SIGSTOP)
    proxy.terminate()
    wait_until(lambda: proxy.log_lines("stopping"), "the first signal")
    proxy.terminate()
    assert proxy.get("/readyz")[0] == 503, "the supervisor has handled the second signal before this request"
    for pid in started(proxy):
        os.kill(pid, signal.SIGCONT)
    assert proxy.process.wait(STOP_SECONDS) == 0


def test_a_suspended_worker_does_not_reply(proxy: ProxyProcess) -> None:
    proxy.start()
    wait_replying(proxy)
    suspended = started(proxy)[0]
    os.kill(suspended, signal.SIGSTOP)
    wait_replying(proxy, 1)
    assert proxy.get("/metrics")[0] == 200
    os.kill(suspended, signal.SIGCONT)
    wait_replying(proxy)


def test_sigterm_while_the_workers_start(proxy: ProxyProcess) -> None:
    proxy.launch()
    wait_until(lambda: len(started(proxy)) == 2, "both workers")
    assert proxy.stop() == 0
    assert not any(map(running, started(proxy)))


@pytest.mark.parametrize("port", ["admin_port", "bootstrap_port"])
def test_a_port_in_use_ends_the_supervisor(proxy: ProxyProcess, port: str) -> None:
    with socket.create_server((HOST, getattr(proxy, port))):
        proxy.launch()
        assert proxy.process.wait(STOP_SECONDS) == 1
    assert not started(proxy)


def test_a_wrong_file_is_said_once(proxy: ProxyProcess) -> None:
    proxy.config_file.write_text("workers: 2\nlisteners: 1\n")
    proxy.launch()
    assert proxy.process.wait(STOP_SECONDS) == 2
    assert len(proxy.log_lines("quota-proxy: ")) == 1


def test_the_sockets_of_a_service_manager_are_served_and_outlive_the_proxy(proxy: ProxyProcess) -> None:
    proxy.hold_ports()
    proxy.start()
    wait_replying(proxy)
    assert not proxy.log_lines(" ERROR ")
    assert proxy.stop() == 0
    socket.create_connection((HOST, proxy.bootstrap_port)).close()
