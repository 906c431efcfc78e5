"""The storm's requests, and what is made of the figures."""

import pytest

from bench.mutation_storm import CALM, FREE, LIMITED, frame, report
from tests.support.messages.kio_messages import read_frame, request_type


def test_the_storm_only_validates() -> None:
    request = read_frame(request_type(19, 7), frame("limited", ["a", "b"], 10, validate_only=True))
    assert [(topic.name, topic.num_partitions) for topic in request.topics] == [("a", 10), ("b", 10)]
    assert request.validate_only


@pytest.mark.parametrize(("limited", "word"), [(0.0149, "met"), (0.015, "missed")])
def test_the_target(limited: float, word: str) -> None:
    lines = report({CALM: [0.01] * 10, LIMITED: [limited] * 10, FREE: [0.05] * 10}, {LIMITED: [3, 4]})
    assert lines[-1].endswith(f"; under 1.5: {word}")
    assert f"| {LIMITED} | {limited * 1000:.1f} | {limited * 1000:.1f} | {limited / 0.01:.2f} | 7 |" in lines
    assert f"| {FREE} | 50.0 | 50.0 | 5.00 | 0 |" in lines
