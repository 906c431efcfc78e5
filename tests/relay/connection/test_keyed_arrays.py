"""Requests whose keys collide in a broker's hash tables end the connection; no byte reaches the broker."""

from dataclasses import replace
from typing import Any

import pytest

from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR
from proxy.wire.frames import CUT_THROUGH_BYTES
from tests.support.messages.kio_messages import request_frame, request_type
from tests.support.messages.random_messages import sample
from tests.support.stories.playbook import Playbook, new_relay

# API, version, array, and the name of its key
ARRAYS = [
    (0, 9, "topic_data", "name"),
    (11, 9, "protocols", "name"),
    (24, 3, "v3_and_below_topics", "name"),
    (23, 4, "topics", "topic"),
]


def request(api_key: int, version: int, array: str, key: str, names: list[str], **more: Any) -> bytes:
    """A request with an element for each of these names."""
    message = sample(request_type(api_key, version))
    (element, *_) = getattr(message, array)
    elements = tuple(replace(element, **{key: name}, **more) for name in names)
    return request_frame(replace(message, **{array: elements}), 1)


@pytest.mark.parametrize(("api_key", "version", "array", "key"), ARRAYS)
def test_equal_keys_end_the_connection(api_key: int, version: int, array: str, key: str) -> None:
    told = Playbook(new_relay())
    frame = request(api_key, version, array, key, ["t"] * 200)
    told.client_fails(frame, reason=CLIENT_PROTOCOL_ERROR, says="keys are equal")
    told.to_broker()


@pytest.mark.parametrize(("api_key", "version", "array", "key"), ARRAYS)
def test_as_many_different_keys_are_forwarded(api_key: int, version: int, array: str, key: str) -> None:
    frame = request(api_key, version, array, key, [f"topic-{at}" for at in range(200)])
    Playbook(new_relay()).client(frame).to_broker(frame)


def test_a_large_request_whose_end_has_not_arrived() -> None:
    told = Playbook(new_relay())
    large = request(11, 9, "protocols", "name", [str(at) for at in range(200)], metadata=bytes(10_000))
    assert len(large) > CUT_THROUGH_BYTES
    told.client_fails(large[:CUT_THROUGH_BYTES], reason=CLIENT_PROTOCOL_ERROR, says="too large")
    told.to_broker()


def test_a_large_request_with_few_elements() -> None:
    large = request(11, 9, "protocols", "name", ["range", "sticky"], metadata=bytes(CUT_THROUGH_BYTES))
    Playbook(new_relay()).client(large).to_broker(large)
