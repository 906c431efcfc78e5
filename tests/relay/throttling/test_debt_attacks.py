"""What clients get who do not wait, by what their quota allows, over 20 minutes of simulated time.

No producer gets more than from Kafka, and none more than its quota, what an idle client may use at once,
and a request of each connection: as in Kafka, a request is forwarded and then paid. Kafka forgets after 11 s
what it is owed, and accepts a request of each new connection: some attackers get 5 to 800 times their quota.
"""

import pytest

from proxy.quota.limits.config_keys import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE
from proxy.quota.limits.enforcement import PACE, WINDOW
from proxy.quota.limits.resources import Resources
from tests.support.messages.exchanges import TOPIC, produce
from tests.support.simulations.debt_attacks import (
    CONSUMERS,
    LIMIT,
    PRODUCERS,
    SECONDS,
    STARVED_SIZES,
    Attack,
    consume,
)
from tests.support.stories.playbook import EVERYONE, engine

BURST_SECONDS = {PACE: 1.0, WINDOW: 10.0}
HEADERS = len(produce(1).rstrip(b"\0"))
"""What a request has besides its records."""
CLIENT_QUOTA = {EVERYONE: {"producer_byte_rate": LIMIT, "consumer_byte_rate": LIMIT}}
TOPIC_QUOTA = Resources(
    {TOPIC: {PRODUCER_BYTE_RATE.name: str(int(LIMIT)), CONSUMER_BYTE_RATE.name: str(int(LIMIT))}}
)


def allowed(algorithm: str, unpaid: int) -> float:
    return LIMIT * (SECONDS + BURST_SECONDS[algorithm]) + unpaid


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
@pytest.mark.parametrize("attack", PRODUCERS.values(), ids=PRODUCERS)
def test_a_producer_gets_its_quota(attack: Attack, algorithm: str) -> None:
    got = attack.run(engine(CLIENT_QUOTA, algorithm, max_throttle_seconds=10.0))
    assert 0.7 * LIMIT * SECONDS < got <= min(allowed(algorithm, attack.unpaid * attack.size), attack.native)


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
@pytest.mark.parametrize("attack", PRODUCERS.values(), ids=PRODUCERS)
def test_a_partition_gets_its_quota(attack: Attack, algorithm: str) -> None:
    """Kafka has no such quota. It counts the records alone."""
    got = attack.run(engine({}, algorithm, TOPIC_QUOTA, max_throttle_seconds=10.0))
    records = got * (attack.size - HEADERS) / attack.size
    assert 0.7 * LIMIT * SECONDS < records <= allowed(algorithm, attack.unpaid * attack.size)


@pytest.mark.parametrize("connections", [1, 5])
@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
@pytest.mark.parametrize("size", [*CONSUMERS, *STARVED_SIZES])
def test_an_obedient_consumer_gets_its_quota(size: int, algorithm: str, connections: int) -> None:
    """Kafka gives it nothing if a batch exceeds what the window allows. The proxy gives a batch, and the next
    one when it is paid.
    """
    got = consume(engine(CLIENT_QUOTA, algorithm, max_throttle_seconds=10.0), size, connections)
    assert 0.7 * LIMIT * SECONDS < got <= allowed(algorithm, size)


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
@pytest.mark.parametrize("size", [25_000, 80_000, 110_000])
def test_consumers_of_a_partition_get_its_quota(size: int, algorithm: str) -> None:
    got = consume(engine({}, algorithm, TOPIC_QUOTA, max_throttle_seconds=10.0), size, 1)
    assert 0.7 * LIMIT * SECONDS < got <= allowed(algorithm, size)
