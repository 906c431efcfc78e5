"""CreatePartitions of more partitions than a controller creates: they do not reach it."""

from collections.abc import Mapping
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.broker import Broker, Reply
from proxy.admin.mutations.growth_bound import PARTITIONS_AT_A_TIME, TOO_MANY, answer_growth
from proxy.admin.mutations.permits import MOST_PARTITIONS
from proxy.relay.close_reasons import RelayError
from proxy.relay.intercepted import Intercepted
from proxy.upstream.partition_counts import PartitionCounts
from proxy.wire.api_keys import METADATA
from tests.support.admin.rights import FixedRights
from tests.support.messages.kio_messages import framed, read_frame, request_frame, request_type, response_type
from tests.support.messages.mutations import (
    GROW,
    NO_TIME,
    create_partitions,
    grown,
    intercepted,
    payload_of,
    to_end,
    topic_id,
)
from tests.support.messages.requests import build, part

TOO_LARGE = 44
VERSIONS = range(4)


def described(counts: Mapping[str, int | None]) -> bytes:
    """A Metadata response v12 with so many partitions of each topic, or None for one that is not known."""
    schema = response_type(METADATA, 12)
    topics = []
    for name, count in counts.items():
        partitions = tuple(
            part(
                schema,
                "MetadataResponsePartition",
                error_code=ErrorCode.none,
                partition_index=index,
                leader_id=1,
                leader_epoch=0,
                replica_nodes=(),
                isr_nodes=(),
                offline_replicas=(),
            )
            for index in range(count or 0)
        )
        code = ErrorCode.unknown_topic_or_partition if count is None else ErrorCode.none
        topic = part(
            schema,
            "MetadataResponseTopic",
            error_code=code,
            name=name,
            topic_id=topic_id(name),
            is_internal=False,
            partitions=partitions,
        )
        topics.append(topic)
    message = build(
        schema, throttle_time=NO_TIME, brokers=(), cluster_id="c", controller_id=1, topics=tuple(topics)
    )
    return payload_of(message)


class Growth:
    """A client that may describe the `known` topics, and a handler that extends each topic that it gets."""

    def __init__(self, known: Mapping[str, int]) -> None:
        self.known = known
        self.asked: list[list[str]] = []
        """The topics of each Metadata request, which has the client's own client id."""
        self.forwarded: list[str] = []
        self.response = b""
        """What the broker responds, if it is not what it should."""

    async def _handle(self, given: Intercepted, _: Broker) -> Reply:
        version = given.header.api_version
        request = read_frame(request_type(GROW, version), framed(given.frame))
        self.forwarded = [topic.name for topic in request.topics]
        return Reply(framed(payload_of(grown(dict.fromkeys(self.forwarded, 0), version))))

    async def _ask(self, frame: bytes) -> bytes:
        assert b"client" in frame[:24]
        request = read_frame(request_type(METADATA, 12), frame)
        assert not request.allow_auto_topic_creation
        names = [topic.name for topic in request.topics]
        self.asked.append(names)
        return self.response or described({name: self.known.get(name) for name in names})

    def send(self, request: Any) -> Any:
        counts = PartitionCounts(lambda node_id: None, 1.0)
        broker = Broker("cluster", 7, counts, self._ask, FixedRights())
        reply = to_end(answer_growth(intercepted(request_frame(request)), broker, self._handle))
        return read_frame(response_type(GROW, request.__version__), reply.frame)

    def codes(self, topics: Mapping[str, int], version: int = 3, **options: Any) -> list[tuple[str, int]]:
        results = self.send(create_partitions(topics, version, **options)).results
        return [(topic.name, topic.error_code.value) for topic in results]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("validate_only", [False, True])
def test_more_than_a_controller_creates_do_not_reach_it(version: int, validate_only: bool) -> None:
    growth = Growth({"a": 2, "b": 2, "c": 2})
    asked = {"a": 5, "b": 2 + MOST_PARTITIONS - 2, "c": 2**31 - 1}
    wanted = [("a", 0), ("b", TOO_LARGE), ("c", TOO_LARGE)]
    assert growth.codes(asked, version, validate_only=validate_only) == wanted
    assert growth.forwarded == ["a"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_of_one_topic_is_answered_with_kafkas_message(version: int) -> None:
    growth = Growth({"a": 2})
    [topic] = growth.send(create_partitions({"a": 3 + MOST_PARTITIONS}, version)).results
    assert (topic.error_code.value, topic.error_message) == (TOO_LARGE, TOO_MANY)
    assert growth.forwarded == []


def test_new_partitions_count_and_not_those_that_a_topic_has() -> None:
    growth = Growth({"a": 20_000, "b": 3})
    assert growth.codes({"a": 20_000 + MOST_PARTITIONS - 1, "b": 4}) == [("a", 0), ("b", 0)]
    assert growth.forwarded == ["a", "b"]


def test_nobody_is_asked_about_few_partitions() -> None:
    growth = Growth({})
    assert growth.codes({"a": MOST_PARTITIONS - 1, "b": 1, "c": -5}) == [("a", 0), ("b", 0), ("c", 0)]
    assert growth.asked == []


def test_what_a_client_may_not_describe_it_does_not_learn() -> None:
    """The same whether the topic exists: all partitions of a topic that is not described are new."""
    assert Growth({}).codes({"a": MOST_PARTITIONS + 1}) == [("a", 0)]
    assert Growth({}).codes({"a": MOST_PARTITIONS + 2}) == [("a", TOO_LARGE)]


def test_nobody_is_asked_after_a_topic_that_is_rejected() -> None:
    """Otherwise a request could cause any number of others."""
    growth = Growth({"b": 1})
    names = [f"topic-{number}" for number in range(300)]
    codes = growth.codes({"a": 2**31 - 1, "b": 2, **dict.fromkeys(names, 2**31 - 1), "c": 0})
    assert [name for name, code in codes if code != TOO_LARGE] == ["b", "c"]
    assert growth.asked == [["a"]]


def test_a_metadata_response_is_not_large() -> None:
    names = [f"topic-{number}" for number in range(250)]
    growth = Growth(dict.fromkeys(names, 99))
    assert {code for _, code in growth.codes(dict.fromkeys(names, 100))} == {0}
    assert [len(some) for some in growth.asked] == [100, 100, 50]
    growth = Growth({"a": 8_000, "b": 8_000, "c": 8_000})
    growth.codes({"a": 8_001, "b": 8_001, "c": 8_001})
    assert growth.asked == [["a", "b"], ["c"]]
    assert PARTITIONS_AT_A_TIME < 3 * 8_001


def test_what_a_controller_rejects_at_once_is_forwarded() -> None:
    """An assignment of other than the new partitions, and a topic that is there twice."""
    growth = Growth({"a": 2})
    assert growth.codes({"a": 2**31 - 1}, assignments={"a": [[1], [1]]}) == [("a", 0)]


def test_a_response_that_does_not_parse() -> None:
    growth = Growth({})
    growth.response = bytes(5)
    with pytest.raises(RelayError, match="Metadata"):
        growth.codes({"a": 2**31 - 1})
