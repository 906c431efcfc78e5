import pytest

from proxy.quota.fetch.grant import FetchGrant
from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.fetch.throttling import LEAST_SECONDS, throttle_fetch
from proxy.relay.inflight import InFlight
from proxy.relay.output import RelayOutput
from tests.support.stories.playbook import EVERYONE, START, engine

# bytes charged at 1000 B/s, seconds for which the client is muted
DEBTS = [(1000, LEAST_SECONDS), (3500, 2.5)]


@pytest.mark.parametrize(("size", "seconds"), DEBTS)
def test_the_client_is_muted_until_the_debt_is_paid_or_it_is_to_ask_again(size: int, seconds: float) -> None:
    quotas = engine({EVERYONE: {"consumer_byte_rate": 1000.0}})
    bucket = Bucket(quota="q", limit=1000.0, rule=RateRule(burst_seconds=1.0), now=START)
    bucket.record(size, START)
    grant = FetchGrant()
    grant.places.add(bucket)
    traffic = Traffic()
    in_flight = InFlight(quotas, traffic, RelayOutput())
    exchange = Exchange(1, new_client(Identity("u", "c", "127.0.0.1"), b"c", traffic, 0))
    until = throttle_fetch(exchange, grant, quotas, in_flight, START)
    assert until == exchange.throttled_until == in_flight.muted_until == pytest.approx(START + seconds)
