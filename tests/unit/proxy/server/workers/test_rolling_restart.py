"""Workers that are replaced one after the other, as users run them."""

import asyncio
import os
import signal
from pathlib import Path

from proxy.upstream.addresses import join_address
from tests.support.process.metadata_broker import MetadataBroker
from tests.support.process.proxy_process import ProxyProcess
from tests.support.process.workers import connecting, running, started
from tests.support.waiting import wait_until

SETTINGS = {
    "workers": 2,
    "quotas": {"store": "none"},
    "limits": {"drain_seconds": 1, "shutdown_delay_seconds": 600},
}


def story(proxy: ProxyProcess) -> None:
    proxy.start().wait_ready()
    first = started(proxy)
    with connecting(proxy.bootstrap_port) as errors:
        proxy.process.send_signal(signal.SIGUSR2)
        wait_until(lambda: proxy.log_lines("replaced 2 workers"), "successors")
        assert proxy.get("/readyz")[0] == 200
    assert errors == []
    assert not any(map(running, first))
    second = started(proxy)[2:]
    assert len(second) == 2
    assert all(map(running, second))
    assert proxy.metric("quota_proxy_workers") == 2
    assert proxy.metric("quota_proxy_worker_restarts_total") == 0

    proxy.config_file.write_text("listeners: 1\n")
    proxy.process.send_signal(signal.SIGUSR2)
    wait_until(lambda: proxy.log_lines("worker 1 is not replaced"), "a successor that cannot start")
    assert all(map(running, second))
    assert proxy.get("/readyz")[0] == 200
    os.kill(second[0], signal.SIGKILL)
    wait_until(lambda: proxy.log_lines("worker 1 was ended by signal 9"), "the noticing of its end")
    proxy.terminate()
    wait_until(lambda: proxy.log_lines("stopping"), "the first signal")
    assert proxy.stop() == 0, "the second signal ends the delay"


async def test_workers_are_replaced_only_by_ones_that_serve_and_no_connection_is_rejected(
    tmp_path: Path,
) -> None:
    async with MetadataBroker() as broker:
        proxy = ProxyProcess(tmp_path, join_address(*broker.address), settings=SETTINGS)
        try:
            await asyncio.to_thread(story, proxy)
        finally:
            proxy.kill()
