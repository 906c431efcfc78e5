"""A visitor comes and goes in each of the ways in which clients go."""

from collections import Counter

import pytest

from bench.soak.churn import Visitor
from proxy.wire.api_keys import API_VERSIONS, PRODUCE
from tests.support.process.frame_server import FrameServer


@pytest.mark.parametrize(
    ("way", "frames"),
    [
        (0, []),
        (1, []),
        (2, [API_VERSIONS]),
        (3, [API_VERSIONS]),
        (4, [API_VERSIONS]),
        (5, [API_VERSIONS, PRODUCE]),
        (6, [API_VERSIONS, PRODUCE]),
        (7, [API_VERSIONS, PRODUCE]),
    ],
)
def test_a_visit(way: int, frames: list[int]) -> None:
    with FrameServer() as server:
        visitor = Visitor(server.port)
        visitor.visit(way + 8)
    assert visitor.failed == 0
    assert len(visitor.took) == 1
    got = [int.from_bytes(frame[:2], "big") for frame in server.frames]
    # The reset connection may have ended before its request was read.
    assert got == frames or (way == 2 and got == [])


def test_clients_go_in_different_ways() -> None:
    with FrameServer() as server:
        visitor = Visitor(server.port)
        for way in range(8):
            visitor.visit(way)
    ends = Counter(server.ends)
    assert ends["partial"] == 1
    assert ends["end"] >= 4
    assert ends.keys() <= {"partial", "end", "reset"}


def test_a_connection_that_the_proxy_ends_has_failed() -> None:
    with FrameServer(lambda frame: None) as server:
        visitor = Visitor(server.port)
        visitor.visit(7)
    assert visitor.failed == 1
    visitor.visit(0)
    assert (visitor.failed, len(visitor.took)) == (2, 2)
