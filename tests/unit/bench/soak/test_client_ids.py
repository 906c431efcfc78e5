"""Requests of many client ids on one connection."""

import pytest

from bench.soak.client_ids import CLIENT_IDS, TOGETHER, _send, evicts
from tests.support.process.frame_server import FrameServer


def test_each_client_id_sends_one_request() -> None:
    count = 2 * TOGETHER + 3
    with FrameServer() as server:
        _send(server.port, 40, count)
    names = [frame[10 : 10 + frame[9]].decode() for frame in server.frames]
    assert names == [f"id-{number:08}" for number in range(40, 40 + count)]
    assert (
        len({frame.replace(name.encode(), b"") for frame, name in zip(server.frames, names, strict=True)})
        == 1
    )


@pytest.mark.parametrize("response", [None, b""])
def test_a_connection_that_ends_is_an_error(response: bytes | None) -> None:
    with FrameServer(lambda frame: response) as server, pytest.raises(OSError):  # noqa: PT011
        _send(server.port, 0, 10)


def test_only_a_long_run_evicts_client_ids() -> None:
    assert evicts(CLIENT_IDS)
    assert not evicts(CLIENT_IDS // 10)
