"""What /api/quotas and the log show while replicas are throttled."""

import pytest

from proxy.quota.kinds.replication.state import ReplicationState
from proxy.telemetry.replication import endless, shown
from tests.support.simulations.move import MEBIBYTE, START, Fetcher, copies, quotas, run, throttled

RATE = 4 * MEBIBYTE


def test_rows_of_api_quotas(move: tuple[ReplicationState, float]) -> None:
    state, now = move
    leader, follower = sorted(shown(state, now), key=lambda row: str(row["kind"]), reverse=True)
    assert leader["kind"] == "leader.replication.throttled.rate"
    assert (leader["broker"], follower["broker"]) == (1, 2)
    assert (leader["limit"], leader["share"], leader["scope"]) == (RATE, RATE, "broker")
    assert leader["replicas_behind"] == 4
    assert leader["since_seconds"] == pytest.approx(now - START, abs=0.1)
    assert leader["too_low"] is False
    assert leader["mode"] == "enforce"


def test_a_throttle_that_is_too_low() -> None:
    quota = quotas(throttled(RATE), [1])[1]
    fetcher = Fetcher(quota, 2, copies(2, 1, 50_000_000))
    for second in range(30):
        fetcher.copies[0].size += 2 * RATE
        run([fetcher], second + 1)
    assert endless(quota.shared, START + 1) == {}
    ((side, sentence),) = endless(quota.shared, fetcher.wakes_at).items()
    assert side == ("leader", 1)
    assert all(part in sentence for part in ("broker 1 ", str(RATE), "leader.replication.throttled.rate"))
    assert shown(quota.shared, fetcher.wakes_at)[0]["too_low"] is True
