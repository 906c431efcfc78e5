"""Totals: a sender of impossible counts changes its own rows only."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.inputs.prices import Prices
from pipeline.inputs.quota_file import SCOPES, Quotas, QuotaSet
from pipeline.schema import COUNTS
from pipeline.transforms.chargeback import chargeback
from pipeline.transforms.headroom import headroom
from pipeline.transforms.recommend import PER_BOTH, peaks
from pipeline.transforms.replay.replay import replay
from pipeline.transforms.throttle import throttle
from pipeline.transforms.totals import LARGEST
from pipeline.transforms.usage import usage
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.kinds.broker_bytes_in import SHARE
from proxy.quota.kinds.client_bytes import PRODUCER_BYTE_RATE
from proxy.quota.limits.config_keys import TOTAL_BYTES_IN_THRESHOLD
from tests.support.messages.usage_events import make_event

Frame = Callable[..., DataFrame]
MOST = 1 << 53
NUMBER = 1025
"""So many events with MOST exceed 64 bits."""
PRICES = Prices(
    currency="EUR", per_gib_in=Decimal(1), per_gib_out=Decimal(1), per_million_requests=Decimal(1)
)
QUOTAS = QuotaSet(
    Quotas(),
    {QuotaEntity(DEFAULT, None): {PRODUCER_BYTE_RATE: 1000.0}},
    topics={"orders": {"producer.byte.rate": "1000"}},
    brokers={"<default>": {TOTAL_BYTES_IN_THRESHOLD.name: "1000"}},
)


def liar(frame: Frame, *names: str, different: str) -> DataFrame:
    """Events of a tenant with MOST in these counts, which differ in a column; and one event of bob."""
    one = frame(make_event(**{"requests": 0, **dict.fromkeys(names, MOST)}))
    several = one.crossJoin(one.sparkSession.range(NUMBER, numPartitions=1))
    place = F.col("id").cast("int") if different == "partition" else F.col(different) + F.col("id") * 10
    events = several.withColumn(different, place).drop("id")
    return events.unionByName(frame(make_event(user="bob", throttle_ms=5)))


@pytest.mark.parametrize(
    ("job", "found"),
    [
        (usage, COUNTS),
        (throttle, COUNTS[3:]),
        (lambda events: chargeback(events, PRICES), COUNTS[:3]),
    ],
)
def test_a_sum_is_at_most_the_largest_number(
    frame: Frame, job: Callable[[DataFrame], DataFrame], found: tuple[str, ...]
) -> None:
    rows = {row.user: row for row in job(liar(frame, *COUNTS, different="interval_start_ms")).collect()}
    assert {rows["alice"][name] for name in found} == {LARGEST}
    assert set(rows) == {"alice", "bob"}
    if "throttle_ms" in found:
        assert rows["bob"].throttle_ms == 5


def test_an_interval_of_impossible_counts_is_measured_and_replayed(frame: Frame) -> None:
    events = liar(frame, "bytes_in", "rejected_bytes", different="partition")
    used = {row.user: row.p99_rate for row in headroom(events, QUOTAS).collect()}
    assert used == {"alice": pytest.approx(LARGEST / 10), "bob": pytest.approx(100)}
    assert {row.user for row in peaks(events, PER_BOTH, SCOPES).collect()} == {"alice", "bob"}
    found = {row.quota: row for row in replay(events, QUOTAS).where("user = 'alice'").collect()}
    assert found[PRODUCER_BYTE_RATE].after_throttle_ms > 1 << 62
    assert found["producer.byte.rate"].after_throttle_ms > 0
    assert found[SHARE].after_rejected_bytes > 1 << 62
    assert found[None].before_rejected_bytes == LARGEST
