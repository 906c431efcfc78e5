"""Real Kafkas, and the proxy in front of them; each starts when the first test asks for it.

Kafkas and the proxy `proxy` are shared by all tests of a session: use topics, groups and client ids of your
own.
"""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from proxy.demo import kafka_distribution
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner

_KEPT = pytest.StashKey[list[str]]()
_LOG_LINES: Final = 60
KAFKA_3: Final = "3.9.1"
_CLUSTERS: Final = ("kafka_cluster", "kafka_391")
"""Fixtures of brokers that are dear to start."""
_LONG: Final = (*_CLUSTERS, "test_security", "test_embedded_kafka", "test_drain", "test_demo")
"""Groups of tests that take longest, in the order in which they should begin."""


def _group(item: pytest.Item) -> str:
    """Which tests run in one process: those that share brokers, otherwise a module's."""
    assert isinstance(item, pytest.Function)
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    wanted = {*item.fixturenames, *(each for each in parameters if isinstance(each, str))}
    return next((name for name in _CLUSTERS if name in wanted), item.path.stem)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """With several processes (pytest-xdist), each cluster starts once, and the longest groups begin first."""
    groups = {item: _group(item) for item in items if item.path.is_relative_to(Path(__file__).parent)}
    if config.pluginmanager.hasplugin("xdist"):
        for item, group in groups.items():
            item.add_marker(pytest.mark.xdist_group(group))
    yield
    order = {group: place for place, group in enumerate(_LONG)}
    items.sort(key=lambda item: order.get(groups.get(item, ""), len(order)))


def _run(kafka: EmbeddedKafka, session: pytest.Session) -> Iterator[EmbeddedKafka]:
    with kafka:
        yield kafka
        kafka.keep_folder = session.testsfailed > 0
    if kafka.keep_folder:
        session.config.stash.setdefault(_KEPT, []).append(str(kafka.folder))


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    """One broker of the newest Kafka; leave no quota behind."""
    yield from _run(EmbeddedKafka(), request.session)


@pytest.fixture(scope="session")
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    """Three brokers of the newest Kafka; a test that stops one starts it again."""
    yield from _run(EmbeddedKafka(brokers=3), request.session)


@pytest.fixture(scope="session")
def kafka_391(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    """One broker of the last Kafka 3, prepared once for quick starts: its tools start many times."""
    kafka_distribution.main([KAFKA_3])
    yield from _run(EmbeddedKafka(version=KAFKA_3), request.session)


@pytest.fixture(scope="session")
def proxy(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """A proxy without quotas in front of `kafka`."""
    with ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka.bootstrap) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def run_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyRunner]:
    """Run proxies with settings of the test's own; they end with the module's tests."""
    with ProxyRunner(tmp_path_factory.mktemp("proxies")) as runner:
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
