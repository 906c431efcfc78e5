"""The gate of protected topics: what clients ask of them is rejected, and the rest of a request goes on."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin import protected_topics as gate
from proxy.admin.broker import Broker, Reply
from proxy.admin.messages.fields import MAX_REQUEST_BYTES
from proxy.admin.protected_topics import API_KEYS, ProtectedTopicsGate
from proxy.quota.verdict import Verdict
from proxy.relay.intercepted import Intercepted
from proxy.wire.errors import Malformed, UnsupportedVersion
from proxy.wire.protected_topics import ProtectedTopics
from tests.support.admin.configs_broker import FakeBroker
from tests.support.messages.configs import ALTER, INCREMENTAL, SET, TOPIC, alter_request, incremental_request
from tests.support.messages.kio_messages import (
    framed,
    read_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
    versions,
)
from tests.support.messages.mutations import (
    CREATE,
    DELETE,
    GROW,
    create_partitions,
    create_topics,
    created,
    delete_topics,
    deleted,
    grown,
    intercepted,
)
from tests.support.messages.records import DELETE_RECORDS_KEY, delete_records, records_deleted

OURS, NAMED_LIKE_OURS = "__quota_proxy_config", "__quota_proxy_config_of_bob"
OUR_ID = UUID(int=99)
DENIED = ErrorCode.topic_authorization_failed
WAIT = Verdict(1.5)


def offsets(names: Sequence[str], numbers: dict[int, int]) -> dict[str, dict[int, int]]:
    return dict.fromkeys(names, numbers)


REQUESTS: dict[int, Callable[[Sequence[str], int], Any]] = {
    CREATE: lambda names, version: create_topics(dict.fromkeys(names, 1), version),
    DELETE: lambda names, version: delete_topics(names, version),
    GROW: lambda names, version: create_partitions(dict.fromkeys(names, 5), version),
    DELETE_RECORDS_KEY: lambda names, version: delete_records(offsets(names, {0: 5, 3: 7}), version),
    ALTER: lambda names, version: alter_request(
        [((TOPIC, name), {"retention.ms": "1"}) for name in names], version
    ),
    INCREMENTAL: lambda names, version: incremental_request(
        [((TOPIC, name), [("retention.ms", SET, "1")]) for name in names], version
    ),
}
RESPONSES: dict[int, Callable[[Sequence[str], int], Any]] = {
    CREATE: lambda names, version: created(dict.fromkeys(names, 0), version),
    DELETE: lambda names, version: deleted(dict.fromkeys(names, 0), version),
    GROW: lambda names, version: grown(dict.fromkeys(names, 0), version),
    DELETE_RECORDS_KEY: lambda names, version: records_deleted(offsets(names, {0: 0}), version),
}
EACH = [(key, version) for key in REQUESTS for version in versions(key)]
each_version = pytest.mark.parametrize(("api_key", "version"), EACH, ids=[f"{key}v{v}" for key, v in EACH])


def names_in(message: Any) -> list[str]:
    """The topics of a request or a response."""
    if hasattr(message, "topic_names"):
        return list(message.topic_names)
    parts = next(
        getattr(message, field)
        for field in ("topics", "results", "resources", "responses")
        if hasattr(message, field)
    )
    return [getattr(each, "name", None) or each.resource_name for each in parts]


def codes_in(message: Any) -> dict[str, set[ErrorCode]]:
    parts = next(
        getattr(message, field) for field in ("topics", "results", "responses") if hasattr(message, field)
    )
    return {
        getattr(each, "name", None) or each.resource_name: {
            one.error_code for one in getattr(each, "partitions", (each,))
        }
        for each in parts
    }


class Kit:
    """The gate before a handler that does whatever it is asked."""

    def __init__(self) -> None:
        self.topics = ProtectedTopics(frozenset([OURS]))
        self.topics.learn(frozenset([OUR_ID.bytes]))
        self.handled: list[list[str]] = []
        self.frames: list[bytes] = []
        self._broker = FakeBroker()

    async def _handle(self, request: Intercepted, broker: Broker) -> Reply:
        key, version = request.header.api_key, request.header.api_version
        frame = framed(request.frame)
        self.frames.append(frame)
        names = names_in(read_frame(request_type(key, version), frame))
        self.handled.append(names)
        if key in RESPONSES:
            return Reply(response_frame(RESPONSES[key](names, version)), WAIT, 1.5)
        return Reply(framed(await self._broker.ask(frame)), WAIT, 1.5)

    async def reply(self, request: Any) -> Reply:
        given_out = intercepted(request_frame(request))
        return await ProtectedTopicsGate(self.topics).answer(given_out, self._broker.broker(), self._handle)

    async def codes(self, request: Any) -> dict[str, set[ErrorCode]]:
        reply = await self.reply(request)
        key, version = int(request.__api_key__), int(request.__version__)
        return codes_in(read_frame(response_type(key, version), reply.frame))


def test_all_apis_that_change_topics_are_covered() -> None:
    assert REQUESTS.keys() == API_KEYS


@each_version
async def test_a_protected_topic_is_rejected_and_the_rest_is_done(api_key: int, version: int) -> None:
    kit = Kit()
    codes = await kit.codes(REQUESTS[api_key](["t", OURS, "u"], version))
    assert codes == {"t": {ErrorCode.none}, OURS: {DENIED}, "u": {ErrorCode.none}}
    assert kit.handled == [["t", "u"]]


@each_version
async def test_of_protected_topics_alone_no_broker_hears(api_key: int, version: int) -> None:
    kit = Kit()
    assert await kit.codes(REQUESTS[api_key]([OURS], version)) == {OURS: {DENIED}}
    assert kit.handled == []


@each_version
async def test_other_topics_are_handled_as_they_came(api_key: int, version: int) -> None:
    for names in (["t"], [NAMED_LIKE_OURS], ["t", NAMED_LIKE_OURS]):
        kit = Kit()
        request = REQUESTS[api_key](names, version)
        reply = await kit.reply(request)
        assert kit.frames == [request_frame(request)]
        assert (reply.throttle, reply.delay_seconds) == (WAIT, 1.5)


async def test_a_wait_of_the_rest_is_kept() -> None:
    reply = await Kit().reply(create_topics({"t": 1, OURS: 1}))
    assert (reply.throttle, reply.delay_seconds) == (WAIT, 1.5)


async def test_a_topic_is_not_deleted_by_its_id() -> None:
    kit = Kit()
    reply = await kit.reply(delete_topics(["t"], ids=[OUR_ID]))
    response = read_frame(response_type(DELETE, 6), reply.frame)
    codes = {result.name: (result.error_code, result.topic_id) for result in response.responses}
    assert codes[None] == (DENIED, OUR_ID)
    assert codes["t"][0] == ErrorCode.none
    assert kit.handled == [["t"]]


async def test_the_name_of_a_group_or_broker_is_no_topic() -> None:
    kit = Kit()
    request = incremental_request([((32, OURS), [("x", SET, OURS)]), ((TOPIC, "t"), [("x", SET, OURS)])])
    await kit.reply(request)
    assert kit.frames == [request_frame(request)]


async def test_a_very_large_request_is_searched_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    kit = Kit()
    many = {f"topic-{number:0200d}": 1 for number in range(MAX_REQUEST_BYTES // 200)}
    request = create_topics(many)
    await kit.reply(request)
    assert kit.frames == [request_frame(request)], "none of them is protected"
    with pytest.raises(Malformed, match=str(MAX_REQUEST_BYTES)):
        await kit.reply(create_topics({**many, OURS: 1}))
    monkeypatch.setattr(gate, "SEARCH_BYTES", 1)
    assert await kit.codes(create_topics({"t": 1, OURS: 1})) == {"t": {ErrorCode.none}, OURS: {DENIED}}


async def test_a_version_that_nobody_offered() -> None:
    given_out = intercepted(request_frame(create_topics({OURS: 1})))
    frame = given_out.frame[:2] + (99).to_bytes(2, "big") + given_out.frame[4:]
    broken = intercepted(framed(frame))
    with pytest.raises(UnsupportedVersion):
        await ProtectedTopicsGate(Kit().topics).answer(broken, FakeBroker().broker(), Kit()._handle)
