"""A reassignment under replication quotas, which the pages and the metrics show."""

from typing import Final

import pytest

from proxy.quota.kinds.replication.state import ReplicationState
from tests.support.simulations.move import MEBIBYTE, Fetcher, copies, quotas, run, throttled

RATE: Final = 4 * MEBIBYTE


@pytest.fixture(scope="package")
def move() -> tuple[ReplicationState, float]:
    """The state in the middle of the reassignment, and the time."""
    quota = quotas(throttled(RATE, 2 * RATE), [1])[1]
    fetcher = Fetcher(quota, 2, copies(2, 4, 50_000_000))
    run([fetcher], 20)
    return quota.shared, fetcher.wakes_at
