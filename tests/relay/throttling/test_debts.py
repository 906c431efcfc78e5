"""A client waits until its debt is paid, however short the waits are that it is told of."""

from typing import Any

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import QuotaEntity
from proxy.quota.limits.enforcement import OBSERVE, PACE, WINDOW
from proxy.quota.limits.limits import Limits
from proxy.relay.counters.traffic import Traffic
from tests.support.messages.exchanges import fetch, fetched, produce, produced
from tests.support.messages.kio_messages import Ports
from tests.support.quotas.enforcement import enforcement
from tests.support.stories.playbook import EVERYONE, START, Playbook, Quotas, drive, engine

LIMIT = 1000.0
LIMITED = {EVERYONE: {"producer_byte_rate": LIMIT, "consumer_byte_rate": LIMIT}}
TOLD_SECONDS = 10.0
"""max_throttle_seconds."""


def limited(algorithm: str = PACE, quotas: Quotas = LIMITED) -> QuotaEngine:
    return engine(quotas, algorithm, max_throttle_seconds=TOLD_SECONDS)


def connected(limits: QuotaEngine) -> Playbook:
    return Playbook(drive(limits, Ports(), Traffic()))


def configure(limits: QuotaEngine, quotas: Quotas, at: float, **settings: Any) -> None:
    """The quotas change at this second of the story."""
    found = enforcement(max_throttle_seconds=TOLD_SECONDS, **settings)
    limits.configure(Limits(quotas, settings=found), START + at)


def test_a_client_is_told_of_the_longest_wait_and_stays_muted_until_it_owes_nothing() -> None:
    """36,000 bytes at 1000 B/s are 35 s beyond the burst."""
    story = connected(limited()).client(produce(1, size=36_000)).to_broker(produce(1, size=36_000)).muted(10)
    story.broker(produced(1)).to_client(produced(1, throttle_ms=10_000))
    story.client(produce(2)).at(10).muted(20).to_broker().at(20).muted(30).at(30).muted(35).to_broker()
    story.at(34.99).muted(35).at(35).to_broker(produce(2)).muted(35.1)


def test_the_debt_holds_with_kafkas_window_too() -> None:
    """Kafka's rate would forget the bytes after 11 s."""
    story = connected(limited(WINDOW)).client(produce(1, size=45_000)).to_broker(produce(1, size=45_000))
    story.muted(10).client(produce(2)).at(34.9).to_broker().at(35).to_broker(produce(2))


def test_a_consumers_debt_holds() -> None:
    ask = fetch(1, max_bytes=100)
    story = connected(limited()).client(ask).to_broker(ask)
    story.broker(fetched(1, size=26_000)).to_client(fetched(1, size=26_000, throttle_ms=10_000))
    story.client(fetch(2, max_bytes=100)).at(24.9).to_broker().muted(25)
    story.at(25).to_broker(fetch(2, max_bytes=100)).unmuted()


def test_a_response_without_the_field_is_delayed_as_long_as_a_wait_is_told() -> None:
    request, response = produce(1, size=36_000, version=0), produced(1, version=0)
    story = connected(limited()).client(request).to_broker(request).broker(response).to_client()
    story.client(produce(2)).at(9.9).to_client().at(10).to_client(response)
    story.at(34.9).to_broker().at(35).to_broker(produce(2))


CHANGES = [
    ("raised", {EVERYONE: {"producer_byte_rate": 1e6}}, {}),
    ("removed", {}, {}),
    ("for others only", {QuotaEntity("another", None): {"producer_byte_rate": 1.0}}, {}),
    ("observed", LIMITED, {"mode": OBSERVE}),
    ("not for this client", LIMITED, {"exempt_cidrs": ["127.0.0.1"]}),
]


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
@pytest.mark.parametrize(
    ("quotas", "settings"), [change[1:] for change in CHANGES], ids=[c[0] for c in CHANGES]
)
def test_a_limit_that_changes_frees_those_who_wait(
    quotas: Quotas, settings: dict[str, Any], algorithm: str
) -> None:
    limits = limited(algorithm)
    story = connected(limits).client(produce(1, size=95_000)).to_broker(produce(1, size=95_000)).muted(10)
    story.client(produce(2)).at(10).muted(20)
    configure(limits, quotas, 11.0, algorithm=algorithm, **settings)
    story.at(19.9).to_broker().at(20.1).to_broker(produce(2)).unmuted()


def test_a_limit_that_is_lowered_makes_the_rest_of_the_debt_last_longer() -> None:
    limits = limited()
    story = connected(limits).client(produce(1, size=21_000)).to_broker(produce(1, size=21_000)).muted(10)
    story.client(produce(2)).at(9.999)
    configure(limits, {EVERYONE: {"producer_byte_rate": LIMIT / 2}}, 9.999)
    story.at(29.9).to_broker().at(30).to_broker(produce(2))


def test_the_longest_of_several_debts_holds() -> None:
    """The fetch is charged while the producer's debt is owed."""
    ask = fetch(1, max_bytes=100)
    story = connected(limited()).client(ask + produce(2, size=16_000)).to_broker(ask, produce(2, size=16_000))
    story.broker(fetched(1, size=36_000)).to_client(fetched(1, size=36_000, throttle_ms=10_000))
    story.client(produce(3)).at(34.9).to_broker().at(35).to_broker(produce(3))


def test_a_proxy_that_shuts_down_lets_no_more_in() -> None:
    story = connected(limited()).client(produce(1, size=95_000)).to_broker(produce(1, size=95_000)).muted(10)
    story.client(produce(2)).to_broker().drain().to_broker().muted(10)
