"""Connections that send their recorded bytes again."""

import pandas as pd
import pytest

from pipeline.transforms.replay.layout import Step
from pipeline.transforms.replay.played import AFTER, SUMS, Connection, intervals_of, play
from proxy.quota.identity import Identity


def connection(*steps: Step, client_id: str = "c") -> Connection:
    return Connection(Identity("alice", client_id, ""), iter([(*step, 0) for step in steps]))


def row(sent: Connection) -> dict[str, object]:
    return dict(zip(AFTER.names[1:], sent.row("q"), strict=True))


def test_steps_of_all_connections_are_sent_in_order_of_time() -> None:
    sent: list[tuple[int, float, float]] = []

    def charge(place: int, size: float, now: float) -> float:
        sent.append((place, size, now))
        return 0.0

    play([connection((0.0, 1.0), (5.0, 2.0)), connection((1.0, 3.0), (6.0, 4.0)), connection()], charge)
    assert sent == [(0, 1.0, 0.0), (1, 3.0, 1.0), (0, 2.0, 5.0), (1, 4.0, 6.0)]


def test_a_wait_delays_only_its_own_connection() -> None:
    """The first request waits for four seconds: the second is sent three seconds late, the third on time."""
    times: list[tuple[int, float]] = []

    def charge(place: int, size: float, now: float) -> float:
        times.append((place, now))
        return 4.0 if size == 100.0 else 0.0

    slow = connection((0.0, 100.0), (1.0, 10.0), (9.0, 10.0))
    other = connection((2.0, 1.0), client_id="d")
    play([slow, other], charge)
    assert times == [(0, 0.0), (1, 2.0), (0, 4.0), (0, 9.0)]
    assert row(slow) == {
        "user": "alice",
        "client_id": "c",
        "quota": "q",
        "throttle_ms": 4000,
        "delayed_bytes": 10,
        "late_ms": 3000,
        "rejected_bytes": 0,
    }
    assert (row(other)["throttle_ms"], row(other)["late_ms"]) == (0, 0)


def test_a_step_is_not_late_by_a_rounding_error() -> None:
    sent = connection((0.1, 1.0))
    play([sent], lambda place, size, now: 0.0)
    assert sent.next is None
    late = connection((0.1, 1.0))
    assert late.sent(0.1 + 1e-9, 0.0) is None
    assert row(late)["delayed_bytes"] == 0


def tenant(*rows: tuple[int, int, int, int, int, int]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["interval_start_ms", "interval_ms", *SUMS])


def test_the_sums_of_a_tenant_are_those_of_its_connections() -> None:
    """One interval without waits, and one whose waits together last three intervals."""
    first, second = intervals_of(
        tenant((70_000, 10_000, 900, 9, 0, 0), (95_000, 10_000, 3000, 30, 3, 30_000)), 50_000
    )
    assert (first.connections, second.connections) == (1, 3)
    assert (first.start, first.length, first.size, first.requests) == (20.0, 10.0, 900.0, 9.0)
    assert (second.start, second.size, second.requests) == (45.0, 1000.0, 10.0)
    assert second.throttled == 1.0
    assert second.throttle_seconds == pytest.approx(10.0)
