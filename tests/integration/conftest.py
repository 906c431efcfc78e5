"""Real Kafkas, and the proxy in front of them; each starts when the first test asks for it.

Kafkas and the proxy `proxy` are shared by all tests of a session: use topics, groups and client ids of your
own.
"""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.replicated import Replicated
from tests.support.kafka.secured_kafka import secured_kafka, set_up
from tests.support.kafka.tool_server import ServedKafka
from tests.support.process.certificates import Authority
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner

_KEPT = pytest.StashKey[list[str]]()
_OF_GROUP = pytest.StashKey[dict[str, EmbeddedKafka]]()
_LOG_LINES: Final = 60
KAFKA_3: Final = "3.9.1"
_SHARING: Final = {
    "kafka_cluster": (
        "test_addresses.py",
        "test_cluster_changes.py",
        "test_cluster_scope.py",
        "test_controller_mutation.py::test_every_broker_takes_from_the_same_bucket",
        "test_embedded_kafka.py::test_a_broker_can_be_stopped_and_killed_and_comes_back",
        "test_ports.py::test_a_node_id_beyond_the_ports",
        "test_shares_leader.py",
        "test_soak.py::test_three_brokers",
        "test_store.py::test_out_of_reach",
        "test_store.py::test_the_topic_outlives_a_broker",
    ),
    "kafka_391": (
        "test_old_kafka.py",
        "[kafka_391",
        "test_controller_mutation.py::test_versions_that_cannot_be_told",
        "test_embedded_kafka.py::test_kafka_3_serves_as_well",
        "test_quotas_cli.py::test_kafka_3_9",
    ),
    "secured": ("test_security.py", "test_login_attacks.py"),
}
"""By fixture, parts of the names of the tests that share brokers which take long to start."""
_LONG: Final = (*_SHARING, "test_embedded_kafka.py", "test_store.py", "test_groups.py")
"""What takes longest, in the order in which it should begin."""
_PROGRAMS: Final = {"test_drain.py", "test_page_commands.py", "test_ports.py", "test_workers.py"}
"""The files whose proxies start as programs: they test how a process starts and ends. Others are forks."""
_LANES: Final = {
    "moves": ("test_replication.py", "test_demo.py"),
    "flows": (
        *("test_sharing.py", "test_workers.py", "test_topic_quotas.py", "test_omitted_partitions.py"),
        "test_pacing.py",
    ),
    "times of moves": (
        *("test_absence.py", "test_reassignment_time.py", "test_end_to_end.py", "test_shared_replication.py"),
    ),
}
"""By lane, the files of the timed tests in their order; the lanes run side by side, and take equally long.

A timed test mostly waits for its quota. Spark (test_end_to_end.py) and a tenant of the demo use much of the
machine, so they run when the brokers of all lanes have started, and not side by side.
"""


def _group(nodeid: str) -> str:
    """Which tests run in one process: those that share brokers, otherwise those of a file."""
    file, _, test = nodeid.partition("::")
    name = f"{file.rpartition('/')[2]}::{test}"
    return next(
        (fixture for fixture, parts in _SHARING.items() if any(part in name for part in parts)),
        name.partition("::")[0],
    )


def _lane(nodeid: str) -> tuple[str, int]:
    """The lane of a timed test, and the place of its file there."""
    file = nodeid.partition("::")[0].rpartition("/")[2]
    for lane, files in _LANES.items():
        if file in files:
            return lane, files.index(file)
    raise pytest.UsageError(f"{nodeid} is timed: add its file to _LANES")


def _is_timed(config: pytest.Config) -> bool:
    """Whether only timed tests run."""
    return bool(config.getoption("markexpr") == "timed")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Have each cluster start once, however many processes pytest-xdist has."""
    from xdist.scheduler.loadscope import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _lane(nodeid)[0] if _is_timed(config) else _group(nodeid)

    return Groups(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Begin with what takes longest, so that no process is left with it alone at the end.

    Timed tests have the order of their lane.
    """
    own = [item for item in items if item.path.is_relative_to(Path(__file__).parent)]
    for item in own:
        _check_group(item)
    yield
    if _is_timed(config):
        items.sort(key=lambda item: _lane(item.nodeid))
        return
    order = {group: place for place, group in enumerate(_LONG)}
    items.sort(key=lambda item: order.get(_group(item.nodeid), len(order)))


def _check_group(item: pytest.Item) -> None:
    assert isinstance(item, pytest.Function)
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    wanted = {*item.fixturenames, *(each for each in parameters if isinstance(each, str))}
    group = _group(item.nodeid)
    if group not in wanted and not wanted.isdisjoint(_SHARING):
        raise pytest.UsageError(f"{item.nodeid} takes {wanted & _SHARING.keys()}: add it to _SHARING")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """End the brokers that only the tests of a group share after its last test: they use CPU time if idle,
    too.
    """
    yield
    group = _group(item.nodeid)
    if nextitem is not None and _group(nextitem.nodeid) != group:
        kafka = item.config.stash.get(_OF_GROUP, {}).pop(group, None)
        if kafka is not None:
            kafka.keep_folder = item.session.testsfailed > 0
            kafka.close()


def _run(kafka: EmbeddedKafka, session: pytest.Session, group: str | None = None) -> Iterator[EmbeddedKafka]:
    """Run brokers until the end of the session, or of the group of tests that share them."""
    with kafka:
        if group is not None:
            session.config.stash.setdefault(_OF_GROUP, {})[group] = kafka
        yield kafka
        kafka.keep_folder = kafka.keep_folder or session.testsfailed > 0
    if kafka.keep_folder:
        session.config.stash.setdefault(_KEPT, []).append(str(kafka.folder))


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    """One broker of the newest Kafka; leave no quota behind."""
    yield from _run(ServedKafka(), request.session)


@pytest.fixture(scope="session")
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    """Three brokers of the newest Kafka; a test that stops one starts it again."""
    yield from _run(ServedKafka(brokers=3), request.session, "kafka_cluster")


@pytest.fixture(scope="session")
def kafka_391(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    """One broker of the last Kafka 3. To write an archive of its classes would take longer than it saves."""
    yield from _run(ServedKafka(version=KAFKA_3), request.session, "kafka_391")


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signs the certificates of `secured` and of its clients."""
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def secured(request: pytest.FixtureRequest, authority: Authority) -> Iterator[EmbeddedKafka]:
    """One broker with an authorizer, and a listener for each kind of authentication."""
    for kafka in _run(secured_kafka(authority), request.session, "secured"):
        set_up(kafka)
        yield kafka


@pytest.fixture(scope="session")
def replicated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicated]:
    """Four brokers that fetch from each other through a proxy, and from the fourth through a second one."""
    with Replicated(tmp_path_factory.mktemp("replicated"), brokers=4, apart=(4,)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def proxy(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """A proxy without quotas in front of `kafka`."""
    with ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka.bootstrap) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def run_proxy(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProxyRunner]:
    """Run proxies with settings of the test's own; they end with the module's tests."""
    fork = request.path.name not in _PROGRAMS
    with ProxyRunner(tmp_path_factory.mktemp("proxies"), fork=fork) as runner:
        yield runner


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of the proxies' logs where a test failed."""
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            proxies = value.proxies if isinstance(value, ProxyRunner) else [value]
            for proxy in proxies:
                if isinstance(proxy, ProxyProcess):
                    tail = "\n".join(proxy.log.splitlines()[-_LOG_LINES:])
                    report.sections.append((f"the proxy's log, {proxy.log_file}", tail))
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand over what the summary tells from a worker of pytest-xdist to the process that prints it."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["kept"] = session.config.stash.get(_KEPT, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect what a worker hands over."""
    node.config.stash.setdefault(_KEPT, []).extend(getattr(node, "workeroutput", {}).get("kept", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name the folders with Kafka's logs when a test failed; the fixtures' own output is captured."""
    for folder in config.stash.get(_KEPT, []):
        terminalreporter.write_line(f"Kafka's logs are kept in {folder}")
