"""What was acknowledged, compared with what the log has."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.soak import delivered
from bench.soak.delivered import check_stored
from bench.soak.scenario import Outcome

NOTHING = {"acknowledged": 3, "lost": 0, "twice": 0, "failed": 0}


@pytest.mark.parametrize(
    ("logs", "idempotent", "failed", "counts", "failures"),
    [
        ([[0, 2], [1]], True, [], NOTHING, 0),
        ([[0, 2], [1, 3]], True, [], NOTHING, 0),  # the response to 3 was not awaited
        ([[0, 2]], True, [], {**NOTHING, "lost": 1}, 1),
        ([[0, 2]], False, [], {**NOTHING, "lost": 1}, 1),
        ([[0, 2], [1, 1]], True, [], {**NOTHING, "twice": 1}, 1),
        ([[0, 2], [1, 1]], False, [], {**NOTHING, "twice": 1}, 0),
        ([[2, 0], [1]], True, [], NOTHING, 1),  # out of order
        ([[0, 2], [1]], True, ["timed out"], {**NOTHING, "failed": 1}, 1),
        ([[0, 2], [1]], False, ["timed out"], {**NOTHING, "failed": 1}, 0),
    ],
)
def test_what_is_lost_or_doubled(
    logs: list[list[int]],
    idempotent: bool,
    failed: list[str],
    counts: dict[str, int],
    failures: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivered, "stored", lambda kafka, topic: logs)
    done = SimpleNamespace(numbers=[0, 1, 2], failures=failed)
    writer = SimpleNamespace(name="client", topic="t", idempotent=idempotent, done=done)
    outcome = Outcome()
    assert check_stored(cast("Any", None), cast("Any", writer), outcome) == counts
    assert len(outcome.failures) == failures
