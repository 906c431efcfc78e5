"""Real Kafkas for the tests; each starts when the first test asks for it, and is shared by all."""

from collections.abc import Iterator

import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka

_KEPT = pytest.StashKey[list[str]]()


def _run(kafka: EmbeddedKafka, session: pytest.Session) -> Iterator[EmbeddedKafka]:
    with kafka:
        yield kafka
        kafka.keep_folder = session.testsfailed > 0
    if kafka.keep_folder:
        session.config.stash.setdefault(_KEPT, []).append(str(kafka.folder))


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    """One broker of the newest Kafka. Use topics and groups of your own, and leave no quota behind."""
    yield from _run(EmbeddedKafka(), request.session)


@pytest.fixture(scope="session")
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    """Three brokers of the newest Kafka; a test that stops one starts it again."""
    yield from _run(EmbeddedKafka(brokers=3), request.session)


@pytest.fixture(scope="session")
def kafka_391(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    """One broker of the last Kafka 3."""
    yield from _run(EmbeddedKafka(version="3.9.1"), request.session)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says where the logs are when a test failed; the fixtures' own output is captured."""
    for folder in config.stash.get(_KEPT, []):
        terminalreporter.write_line(f"Kafka's logs are kept in {folder}")
