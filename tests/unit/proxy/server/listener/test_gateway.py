"""Gateway: what it shows of its parts, and what stops when."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

from proxy.config.settings import ConnectionLimits, Listener, Upstream
from proxy.quota.usage import UsageLedger
from proxy.relay.counters.traffic import Traffic
from proxy.security.access import PLAINTEXT
from proxy.server.listener.gateway import Gateway
from proxy.server.listener.serving import Serving, TransportSecurity


class Part:
    """Every part of a listener at once: it keeps what the gateway calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.open = {1, 2}
        self.without_port = {7}
        self.by_reason = {"idle": 3}
        self.count = 5
        self.connects = {(1, "failed"): 4}

    def pauses(self) -> Iterator[str]:
        return iter(["throttled", ""])

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.calls.append(name)

    def problems(self) -> list[str]:
        return ["no broker"]

    def warnings(self) -> list[str]:
        return ["a warning"]


def gateway(part: Part, **listener: Any) -> Gateway:
    anything = cast("Any", part)
    return Gateway(
        listener=Listener(upstream=Upstream(bootstrap=("k:9092",)), **listener),
        traffic=Traffic(usage=UsageLedger()),
        security=TransportSecurity(PLAINTEXT, None, anything),
        ports=anything,
        serving=Serving(anything, anything, anything, anything),
        discovery=anything,
        watch=anything,
        limits=ConnectionLimits(),
        topic_names=anything,
        tasks=cast("Any", SimpleNamespace(start=lambda work: work.close())),
    )


def test_what_the_metrics_and_the_readiness_page_see() -> None:
    shown = gateway(Part(), name="clients")
    assert (shown.name, shown.between_brokers) == ("clients", False)
    assert (shown.connection_count, shown.brokers_without_port, shown.closed) == (2, 1, {"idle": 3})
    assert list(shown.pauses()) == ["throttled", ""]
    assert "throttled" in shown.pause_reasons
    assert shown.rejected_addresses == 5
    assert shown.broker_connects == {(1, "failed"): 4}
    assert shown.usage is shown.traffic.usage
    assert shown.problems() == ["no broker"]
    assert shown.warnings() == ["a warning"] * 3, "of the brokers, the traffic and the ports"


def test_connections_go_on_when_it_stops_listening() -> None:
    part = Part()
    stopped = gateway(part)
    stopped.start()
    assert part.calls == ["start"]
    stopped.stop_listening()
    assert part.calls == ["start", "close"], "the sockets"
    stopped.close()
    assert part.calls == ["start", "close", "close", "flush_log", "flush_log"], "discovery; logs that count"
