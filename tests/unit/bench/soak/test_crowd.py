"""The crowd: connections that send at fixed times, and are counted when they are lost."""

import threading

import pytest

from bench.soak.crowd import Crowd, crowd
from proxy.wire.api_keys import API_VERSIONS, PRODUCE
from tests.support.process.frame_server import HOST, FrameServer
from tests.support.waiting import wait_until


def api_key(frame: bytes) -> int:
    return int.from_bytes(frame[:2], "big")


def serve_until(people: Crowd, enough: "threading.Event") -> threading.Thread:
    thread = threading.Thread(target=people.serve, args=(enough,))
    thread.start()
    return thread


def test_every_connection_has_its_first_response_before_the_crowd_begins() -> None:
    with FrameServer() as server:
        people = Crowd((HOST, server.port), "t", 250, 0.0)
        people.connect()
        assert [api_key(frame) for frame in server.frames] == [API_VERSIONS] * 250
        over = threading.Event()
        thread = serve_until(people, over)
        over.set()
        thread.join()
        people.close()
    assert (people.latencies, people.lost) == ([], 0)


def test_each_connection_produces_every_so_often() -> None:
    with FrameServer() as server:
        people = Crowd((HOST, server.port), "t", 5, 0.05)
        people.connect()
        over = threading.Event()
        thread = serve_until(people, over)
        wait_until(lambda: len(people.latencies) >= 20, "twenty responses")
        over.set()
        thread.join()
        people.close()
    produced = [frame for frame in server.frames if api_key(frame) == PRODUCE]
    assert len(produced) >= len(people.latencies)
    assert people.lost == 0
    assert all(0 < latency < 30 for latency in people.latencies)


def test_a_connection_that_ends_is_lost_and_sends_no_more() -> None:
    """Every third Produce request ends its connection, until one connection is left."""
    lock, produced = threading.Lock(), [0]

    def respond(frame: bytes) -> bytes | None:
        if api_key(frame) != PRODUCE:
            return frame[:8]
        with lock:
            produced[0] += 1
            return None if produced[0] in (3, 6) else frame[:8]

    with FrameServer(respond) as server:
        people = Crowd((HOST, server.port), "t", 3, 0.02)
        people.connect()
        over = threading.Event()
        thread = serve_until(people, over)
        wait_until(lambda: people.lost == 2 and len(people.latencies) > 12, "two lost connections")
        over.set()
        thread.join()
        people.close()
    assert people.lost == 2


def test_a_crowd_in_a_process_says_what_it_measured() -> None:
    with FrameServer() as server:
        with crowd(f"{HOST}:{server.port}", "t", 3, 0.02) as watched:
            wait_until(lambda: len(server.frames) > 20, "requests")
            assert watched.said == {}
        assert watched.said["lost"] == 0
        assert watched.said["responses"] > 10
        assert watched.said["latency"].keys() == {"p50", "p90", "p99", "max"}


def test_a_crowd_without_a_server_fails() -> None:
    with pytest.raises(RuntimeError, match=r"bench\.soak\.crowd 127\.0\.0\.1:1"), crowd(f"{HOST}:1", "t", 1):
        pass
