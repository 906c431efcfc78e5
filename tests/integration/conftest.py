"""Real Kafkas, and the proxy in front of them; each starts when the first test asks for it.

Kafkas and the proxy `proxy` are shared by all tests of a session: use topics, groups and client ids of your
own.
"""

from collections.abc import Generator, Iterator
from typing import Final

import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner

_KEPT = pytest.StashKey[list[str]]()
_LOG_LINES: Final = 60


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
    """One broker of the last Kafka 3."""
    yield from _run(EmbeddedKafka(version="3.9.1"), request.session)


@pytest.fixture(scope="session")
def proxy(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """A proxy without quotas in front of `kafka`."""
    with ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka.bootstrap) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def run_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyRunner]:
    """Runs proxies with settings of the test's own; they end with the module's tests."""
    with ProxyRunner(tmp_path_factory.mktemp("proxies")) as runner:
        yield runner


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows the end of the proxies' logs where a test failed."""
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            proxies = value.proxies if isinstance(value, ProxyRunner) else [value]
            for proxy in proxies:
                if isinstance(proxy, ProxyProcess):
                    tail = "\n".join(proxy.log.splitlines()[-_LOG_LINES:])
                    report.sections.append((f"the proxy's log, {proxy.log_file}", tail))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says where the logs are when a test failed; the fixtures' own output is captured."""
    for folder in config.stash.get(_KEPT, []):
        terminalreporter.write_line(f"Kafka's logs are kept in {folder}")
