"""Reload: a changed file takes effect, however it was changed; a wrong one is rejected."""

import asyncio
import errno
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from proxy.bounded_yaml import MAX_DEPTH
from proxy.quota.identity import QuotaEntity
from proxy.server import reload
from proxy.server.reload import Reload
from proxy.store import from_settings
from proxy.store.from_settings import Configuration, load_configuration
from proxy.store.layers import ClientLayer
from proxy.store.quota_store import FileQuotas
from proxy.store.yaml_file import read_clients
from tests.support.process.settings import KINDS

LISTENER = "listeners: [{upstream: {bootstrap: ['k:9092']}}]\n"
ALICE = QuotaEntity("alice", None)
QUOTA = "quotas: {{clients: [{{entity: {{user: alice}}, producer_byte_rate: {rate}}}]{more}}}\n"


def text(rate: int = 1, more: str = "", rest: str = "") -> str:
    return LISTENER + QUOTA.format(rate=rate, more=more) + rest


class Kit:
    """A reload of a file, and the rates that it has applied."""

    def __init__(self, path: Path, while_starting: str = "") -> None:
        """`while_starting`: what the file has when it is watched, if that is not what was read."""
        self.path = path
        path.write_text(text())
        self.applied: list[object] = []
        self.quotas: list[FileQuotas] = []
        self._something = asyncio.Event()
        loaded = load_configuration(path, KINDS)
        self.settings = loaded.settings
        if while_starting:
            path.write_text(while_starting)
        self.reload = Reload(path, self.settings, KINDS, self._apply, loaded.file)

    async def _apply(self, configuration: Configuration) -> None:
        self.quotas.append(configuration.quotas)
        self.applied.append(configuration.quotas.layer.lasting[ALICE]["producer_byte_rate"])
        self._something.set()

    async def watched(self, change: Callable[[], object], rate: int) -> None:
        """Make a change under the watch, and wait until its rate is in force."""
        task = asyncio.get_running_loop().create_task(self.reload.watch())
        try:
            change()
            async with asyncio.timeout(30):
                while self.applied[-1:] != [rate]:
                    self._something.clear()
                    await self._something.wait()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    monkeypatch.setattr(reload, "FILE_CHECK_SECONDS", 0.02)
    return Kit(tmp_path / "proxy.yaml")


def replace(path: Path, content: str) -> None:
    """As editors do: write a new file, and rename it."""
    new = path.with_suffix(".new")
    new.write_text(content)
    new.rename(path)


async def test_written_file_is_reloaded(kit: Kit) -> None:
    await kit.watched(lambda: kit.path.write_text(text(22)), 22)


async def test_replaced_file_is_reloaded(kit: Kit) -> None:
    await kit.watched(lambda: replace(kit.path, text(2)), 2)


async def test_replaced_link_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Kubernetes does: proxy.yaml -> ..data/proxy.yaml, ..data -> a folder with the time in its name."""
    monkeypatch.setattr(reload, "FILE_CHECK_SECONDS", 0.02)
    for number in (1, 2):
        (tmp_path / f"at-{number}").mkdir()
        (tmp_path / f"at-{number}" / "proxy.yaml").write_text(text(number))
    (tmp_path / "..data").symlink_to("at-1")
    link = tmp_path / "proxy.yaml"
    link.symlink_to("..data/proxy.yaml")
    # The kit writes its own start through the link.
    kit = Kit(link)

    def replace_link() -> None:
        (tmp_path / "..new").symlink_to("at-2")
        os.replace(tmp_path / "..new", tmp_path / "..data")

    await kit.watched(replace_link, 2)


async def test_a_storm_of_signals_costs_two_reloads(kit: Kit, caplog: pytest.LogCaptureFixture) -> None:
    """The second one reads the file after the last signal."""
    caplog.set_level(logging.INFO)
    # The first reload ends after the last signal.
    one_thread, gate = ThreadPoolExecutor(max_workers=1), threading.Event()
    asyncio.get_running_loop().set_default_executor(one_thread)
    one_thread.submit(gate.wait)
    storm = [asyncio.ensure_future(kit.reload.reload("SIGHUP")) for _ in range(100)]
    await asyncio.sleep(0)
    changed = kit.path.with_suffix(".new")
    changed.write_text(text(2))
    changed.replace(kit.path)
    gate.set()
    await asyncio.gather(*storm)
    assert kit.applied[-1] == 2
    assert len([line for line in caplog.messages if "SIGHUP" in line]) == 2
    await kit.reload.reload("SIGHUP")
    assert len([line for line in caplog.messages if "SIGHUP" in line]) == 3


async def test_only_other_quotas_are_applied(kit: Kit) -> None:
    """The reload does not keep the entries of clients, which may be many."""
    for rate, applied in ((1, []), (2, [2]), (2, [2]), (1, [2, 1])):
        kit.path.write_text(text(rate) + "# comment\n" * rate)
        await kit.reload.reload("test")
        assert kit.applied == applied
    kit.path.write_text(text(1, more=", burst_seconds: 9"))
    await kit.reload.reload("test")
    assert kit.applied == [2, 1, 1]


async def test_wrong_file_is_rejected_and_the_next_valid_one_applied(
    kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    kit.path.write_text(LISTENER + "quotas:\n  burst_secs: 1\n")
    await kit.reload.reload("file changed")
    assert kit.applied == []
    assert kit.reload.problem.startswith(f"{kit.path}:3: quotas.burst_secs: ")
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert f"{kit.path}:3: quotas.burst_secs: " in record.getMessage()
    await kit.watched(lambda: kit.path.write_text(text(333)), 333)
    assert kit.reload.problem == ""


async def test_a_file_that_is_nested_deeply_is_rejected(kit: Kit) -> None:
    """libyaml would end the process with SIGSEGV."""
    kit.path.write_text(text(rate=2, rest="usage: " + "[" * 100_000))
    await kit.reload.reload("test")
    assert f"deeper than {MAX_DEPTH} " in kit.reload.problem
    assert kit.applied == []


async def test_missing_file_is_a_problem(kit: Kit) -> None:
    kit.path.unlink()
    await kit.reload.reload("file changed")
    assert kit.reload.problem.startswith(f"{kit.path}: ")
    assert os.strerror(errno.ENOENT) in kit.reload.problem
    assert kit.applied == []


async def test_a_file_that_changes_while_the_process_starts_is_applied(tmp_path: Path) -> None:
    kit = Kit(tmp_path / "proxy.yaml", while_starting=text(rate=22))
    await kit.watched(lambda: None, 22)


async def test_file_that_is_being_written_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is loaded when two checks find it the same."""
    states = iter([(2,), (3,), (3,), (3,)])
    monkeypatch.setattr(reload, "FILE_CHECK_SECONDS", 0)
    monkeypatch.setattr(reload, "file_state", lambda path: next(states))
    path = tmp_path / "proxy.yaml"
    path.write_text(text())
    settings = load_configuration(path, KINDS).settings

    async def apply(configuration: Configuration) -> None:
        """Nothing is reloaded."""

    watched = Reload(path, settings, KINDS, apply, (1,))
    left: list[int] = []

    async def note(reason: str) -> None:
        left.append(len(list(states)))
        raise asyncio.CancelledError

    monkeypatch.setattr(watched, "reload", note)
    with pytest.raises(asyncio.CancelledError):
        await watched.watch()
    assert left == [1], "reloaded at the second check that finds (3,)"


async def test_equal_quotas_are_not_applied(kit: Kit) -> None:
    await kit.reload.reload("SIGHUP")
    assert kit.applied == []


async def test_keys_that_need_a_restart_are_logged(kit: Kit, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    kit.path.write_text(
        "cluster: other\n"
        "listeners: [{bind: 127.0.0.9, upstream: {bootstrap: ['k:9092']}}]\n"
        + QUOTA.format(rate=7, more=", store: none")
        + "admin: {port: 9645}\nlimits: {idle_seconds: 5}\n"
    )
    await kit.reload.reload("file changed")
    assert kit.applied == [7]
    assert caplog.messages[0] == f"{kit.path}: reloaded (file changed): quotas applied"
    keys = "cluster, listeners[0].bind, listeners[0].advertised_host, admin.port, limits.idle_seconds"
    assert caplog.messages[1].endswith(f": {keys}, quotas.store")
    await kit.reload.reload("SIGHUP")
    assert kit.applied == [7], "keys that need a restart are no change of the quotas"


async def test_configs_are_read_by_the_running_enforcement(kit: Kit) -> None:
    """Who enforces replication quotas changes with a restart, so the file's have to fit those in force."""
    replication = "{name: r, replication: true, broker_port_base: 0, upstream: {brokers: {1: 'k:9093'}}}"
    listeners = f"listeners: [{{upstream: {{bootstrap: ['k:9092']}}}}, {replication}]\n"
    rate = "brokers: {1: {leader.replication.throttled.rate: 5}}"
    kit.path.write_text(listeners + QUOTA.format(rate=8, more=f", {rate}"))
    await kit.reload.reload("SIGHUP")
    assert kit.applied == []
    assert "quotas.brokers.1.leader.replication.throttled.rate" in kit.reload.problem
    kit.path.write_text(listeners + QUOTA.format(rate=9, more=""))
    await kit.watched(lambda: None, 9)
    assert kit.reload.problem == ""


async def test_the_running_usage_topic_keeps_its_exception_from_the_default(kit: Kit) -> None:
    everywhere = ", topics: {<default>: {producer.byte.rate: 5}}"
    kit.path.write_text(text(8, everywhere, "usage: {kafka: {topic: new}}\n"))
    await kit.reload.reload("SIGHUP")
    [quotas] = kit.quotas
    assert quotas.build({}).resources.proxy_topics == kit.settings.proxy_topics


async def test_quotas_are_read_once(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []

    def counting(clients: Sequence[Mapping[str, object]], *rest: object) -> ClientLayer:
        read.append(clients)
        return read_clients(clients, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(from_settings, "read_clients", counting)
    kit.path.write_text(text(5))
    await kit.reload.reload("SIGHUP")
    assert (kit.applied, len(read)) == ([5], 1)


async def test_another_number_of_listeners_needs_a_restart(
    kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    second = "{name: b, bootstrap_port: 1, broker_port_base: 0, upstream: {bootstrap: ['k:9092']}}"
    listeners = f"listeners: [{{upstream: {{bootstrap: ['k:9092']}}}}, {second}]\n"
    kit.path.write_text(listeners + QUOTA.format(rate=1, more=""))
    await kit.reload.reload("file changed")
    assert caplog.messages[-1].endswith(": listeners")
