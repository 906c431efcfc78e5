"""The reporter of a configuration; test_reporter.py tests what it reports."""

import json
from pathlib import Path

from proxy.server.usage import usage_reporter
from proxy.tasks import Tasks
from proxy.wire.api_keys import METADATA
from tests.support.process.listeners import build_listeners
from tests.support.process.log_broker import LogBroker
from tests.support.process.settings import read

PORTS = "bootstrap_port: 0, broker_port_base: 0"


def text(host: str = "127.0.0.1", port: int = 1) -> str:
    """Two listeners for clients, and one between brokers."""
    upstream = f"upstream: {{bootstrap: ['{host}:{port}']}}"
    return f"""
quotas: {{store: none}}
cluster: prod
listeners:
- {{name: one, {PORTS}, {upstream}}}
- {{name: two, {PORTS}, {upstream}}}
- {{name: brokers, replication: true, {PORTS}, upstream: {{brokers: {{1: b:2}}}}}}
"""


async def test_there_is_none_unless_usage_is_configured(tmp_path: Path) -> None:
    settings = read(tmp_path, text())
    listeners = build_listeners(settings)
    assert usage_reporter(settings, listeners) is None
    assert [gateway.usage for gateway in listeners.all] == [None, None, None]


async def test_the_events_of_every_client_listener_reach_every_sink(tmp_path: Path) -> None:
    async with LogBroker("used") as broker:
        usage = "usage: {kafka: {topic: used}, files: {folder: events}}"
        settings = read(tmp_path, text(*broker.address) + usage)
        listeners = build_listeners(settings)
        reporter = usage_reporter(settings, listeners)
        assert reporter is not None
        one, two, brokers = listeners.all
        assert one.usage is not None
        assert two.usage is not None
        assert brokers.usage is None, "replication is no client's usage"
        one.usage.client(1, "alice", "c").count_request(METADATA, 100)
        two.usage.client(1, "bob", "c").count_request(METADATA, 50)
        tasks = Tasks()
        for sink in reporter.sinks:
            tasks.start(sink.run())
        await reporter.finish()
        await tasks.cancel()
        [file] = (tmp_path / "events").iterdir()
        lines = file.read_bytes().splitlines()
        assert sorted(broker.values) == sorted(lines)
        events = {event["listener"]: event for event in map(json.loads, lines)}
        assert {name: (event["user"], event["bytes_in"]) for name, event in events.items()} == {
            "one": ("alice", 100),
            "two": ("bob", 50),
        }
        assert {event["cluster"] for event in events.values()} == {"prod"}


async def test_files_alone(tmp_path: Path) -> None:
    """Nothing is asked of the cluster."""
    settings = read(tmp_path, text() + "usage: {files: {folder: events, max_bytes: 5000, keep: 2}}")
    reporter = usage_reporter(settings, build_listeners(settings))
    assert reporter is not None
    assert [sink.name for sink in reporter.sinks] == ["files"]
    await reporter.finish()
    assert reporter.problems == []
