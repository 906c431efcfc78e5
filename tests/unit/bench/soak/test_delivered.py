"""What was acknowledged, compared with what the log has."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.soak import delivered
from bench.soak.delivered import check_stored
from bench.soak.scenario import Outcome


@pytest.mark.parametrize(
    ("logs", "idempotent", "failed", "failures"),
    [
        ([[0, 2], [1]], True, [], []),
        ([[0, 2], [1, 3]], True, [], []),  # the response to 3 was not awaited
        ([[0, 2]], True, [], ["client: 1 acknowledged messages are lost: [1]"]),
        ([[0, 2]], False, [], ["client: 1 acknowledged messages are lost: [1]"]),
        ([[0, 2], [1, 1]], True, [], ["client: 1 messages are stored twice"]),
        ([[0, 2], [1, 1]], False, [], []),
        ([[2, 0], [1]], True, [], ["client: messages of a partition are out of order"]),
        ([[0, 2], [1]], True, ["timed out"], ["client: 1 messages failed: ['timed out']"]),
        ([[0, 2], [1]], False, ["timed out"], []),
    ],
)
def test_what_is_lost_or_doubled(
    logs: list[list[int]],
    idempotent: bool,
    failed: list[str],
    failures: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivered, "stored", lambda kafka, topic: logs)
    done = SimpleNamespace(numbers=[0, 1, 2], failures=failed)
    writer = SimpleNamespace(name="client", topic="t", idempotent=idempotent, done=done)
    outcome = Outcome()
    figures = check_stored(cast("Any", None), cast("Any", writer), outcome)
    assert outcome.failures == failures
    assert figures["acknowledged"] == 3
