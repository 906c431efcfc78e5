"""What the demo makes of its end; tests/integration/tools/test_demo.py runs it whole."""

import signal
from collections.abc import Callable, Iterator

import pytest
from aiokafka.errors import KafkaError
from rich.console import Console

from proxy.demo import demo
from proxy.demo.embedded_kafka import BrokerFailed
from proxy.demo.embedded_proxy import EmbeddedProxy, ProxyFailed
from proxy.demo.tenants import CONSUMER, PRODUCER, Flow
from proxy.store.yaml_file import read_clients
from tests.support.process.settings import QUOTA_KEYS

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def signal_handlers() -> Iterator[None]:
    """The demo is a process of its own, and leaves its handlers behind."""
    handlers = [signal.getsignal(number) for number in SIGNALS]
    yield
    for number, handler in zip(SIGNALS, handlers, strict=True):
        signal.signal(number, handler)


def run_as(monkeypatch: pytest.MonkeyPatch, run: Callable[[], int]) -> int:
    """`main` with this in place of the demo itself."""
    monkeypatch.setattr(demo, "_run", lambda console, keep: run())
    return demo.main()


def raises(error: BaseException) -> Callable[[], int]:
    def run() -> int:
        raise error

    return run


@pytest.mark.parametrize("code", [0, 1])
def test_the_exit_status(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    assert run_as(monkeypatch, lambda: code) == code


@pytest.mark.parametrize("error", [BrokerFailed("broker 1 ended"), KafkaError("broker 1 ended")])
def test_an_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    assert run_as(monkeypatch, raises(error)) == 1
    said = capsys.readouterr().err
    assert said.startswith("quota-proxy demo: ")
    assert said.endswith("broker 1 ended\n")


@pytest.mark.parametrize("number", SIGNALS)
def test_every_signal_stops_it_like_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    def run() -> int:
        signal.raise_signal(number)
        return 0

    assert run_as(monkeypatch, run) == 130
    assert capsys.readouterr().err.startswith("Stopped")


def test_the_configuration_has_the_tenants_quotas() -> None:
    limits = read_clients(demo._quotas(), QUOTA_KEYS, ("quotas", "clients")).lasting
    shown = {(entity.client_id, key): limit for entity, keys in limits.items() for key, limit in keys.items()}
    given = {(tenant, key): limit for tenant, does in demo.TENANTS.items() for key, limit in does.items()}
    assert shown == {flow: limit for flow, limit in given.items() if limit is not None}
    assert {tenant for (tenant, _), limit in given.items() if limit is None} == {"carol"}


class Proxy(EmbeddedProxy):
    """Is said to run, or to have failed."""

    def __init__(self, failure: ProxyFailed | None = None) -> None:
        self.failure = failure

    def check(self) -> None:
        if self.failure:
            raise self.failure


async def test_a_tenant_that_transfers_too_little_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_START_TIMEOUT", 0.0)
    flows = [Flow("alice", PRODUCER, 100, bytes=201), Flow("bob", CONSUMER, 100, bytes=200)]
    with pytest.raises(demo.DemoFailed, match=r"\bbob\b"):
        await demo._until_under_way(flows, Proxy())
    flows[1].bytes += 1
    await demo._until_under_way(flows, Proxy())


async def test_a_proxy_that_ends_stops_the_measurement() -> None:
    proxy = Proxy(ProxyFailed("the proxy ended"))
    with pytest.raises(ProxyFailed):
        await demo._until_under_way([Flow("carol", PRODUCER, None)], proxy)
    with pytest.raises(ProxyFailed):
        await demo._measure([Flow("carol", PRODUCER, None)], proxy, Console())


async def test_rates_are_measured_between_start_and_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Clock:
        now = 1000.0

        def monotonic(self) -> float:
            return self.now

    clock = Clock()
    flow = Flow("alice", PRODUCER, 1 << 20, bytes=5 << 20)

    async def sleep(seconds: float) -> None:
        clock.now += seconds + 0.5  # a machine that is late
        flow.bytes += 1 << 20

    monkeypatch.setattr(demo, "time", clock)
    monkeypatch.setattr("asyncio.sleep", sleep)
    monkeypatch.setattr(demo, "SECONDS", 4)
    assert await demo._measure([flow], Proxy(), Console(width=80)) == [pytest.approx(4 * (1 << 20) / 4.5)]
    said = capsys.readouterr().out.splitlines()
    assert [line.split() for line in said] == [
        ["MiB/s", "alice"],
        ["produces"],
        ["1", "s", "0.67"],
        ["2", "s", "1.00"],
        ["3", "s", "1.00"],
        ["4", "s", "1.00"],
    ]
