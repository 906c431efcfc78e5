"""CreatePartitions of more partitions than a controller creates: they do not reach it."""

from collections.abc import Mapping
from typing import Any

import pytest

from proxy.admin.broker import Broker, Reply
from proxy.admin.mutations.growth_bound import TOO_MANY, GrowthBound
from proxy.admin.mutations.permits import MOST_PARTITIONS
from proxy.relay.intercepted import Intercepted
from tests.support.admin.mutation_story import NODE_ID, Counts, Story
from tests.support.admin.rights import FixedRights
from tests.support.messages.kio_messages import framed, read_frame, request_frame, request_type, response_type
from tests.support.messages.mutations import GROW, create_partitions, grown, intercepted, payload_of, to_end

TOO_LARGE = 44
VERSIONS = range(4)


class Growth:
    """A client, and a handler that extends each topic by what it is given."""

    def __init__(self, known: Mapping[str, int]) -> None:
        self.counts = Counts()
        self.counts.known = dict(known)
        self.forwarded: list[str] = []
        self._story = Story()
        self._bound = GrowthBound(self._story._mutations.costs)

    async def _handle(self, given: Intercepted, _: Broker) -> Reply:
        version = given.header.api_version
        request = read_frame(request_type(GROW, version), framed(given.frame))
        self.forwarded = [topic.name for topic in request.topics]
        return Reply(framed(payload_of(grown(dict.fromkeys(self.forwarded, 0), version))))

    async def _ask(self, _: bytes) -> bytes:
        raise AssertionError("the handler forwards")

    def send(self, request: Any) -> Any:
        broker = Broker("cluster", NODE_ID, self.counts, self._ask, FixedRights())
        given = intercepted(request_frame(request))
        reply = to_end(self._bound.answer(given, broker, self._handle))
        return read_frame(response_type(GROW, request.__version__), reply.frame)

    def codes(self, topics: Mapping[str, int], version: int = 3, **options: Any) -> list[tuple[str, int]]:
        results = self.send(create_partitions(topics, version, **options)).results
        return [(topic.name, topic.error_code.value) for topic in results]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("validate_only", [False, True])
def test_more_than_a_controller_creates_do_not_reach_it(version: int, validate_only: bool) -> None:
    growth = Growth({"a": 2, "b": 2, "c": 2})
    asked = {"a": 5, "b": 2 + MOST_PARTITIONS - 2, "c": 2**31 - 1}
    assert growth.codes(asked, version, validate_only=validate_only) == [
        ("a", 0),
        ("b", TOO_LARGE),
        ("c", TOO_LARGE),
    ]
    assert growth.forwarded == ["a"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_of_one_topic_is_answered_with_kafkas_message(version: int) -> None:
    growth = Growth({"a": 2})
    [topic] = growth.send(create_partitions({"a": 3 + MOST_PARTITIONS}, version)).results
    assert (topic.error_code.value, topic.error_message) == (TOO_LARGE, TOO_MANY)
    assert growth.forwarded == []


def test_new_partitions_count_and_not_those_that_a_topic_has() -> None:
    growth = Growth({"a": 50_000, "b": 3})
    assert growth.codes({"a": 50_000 + MOST_PARTITIONS - 1, "b": 4}) == [("a", 0), ("b", 0)]
    assert growth.forwarded == ["a", "b"]


def test_nobody_is_asked_about_few_partitions() -> None:
    growth = Growth({})
    assert growth.codes({"a": MOST_PARTITIONS - 1, "b": 1, "c": -5}) == [("a", 0), ("b", 0), ("c", 0)]
    assert growth.counts.questions == []


@pytest.mark.parametrize("unreachable", [False, True])
def test_all_partitions_of_an_unknown_topic_are_new(unreachable: bool) -> None:
    growth = Growth({})
    growth.counts.unreachable = unreachable
    assert growth.codes({"a": MOST_PARTITIONS + 1}) == [("a", 0)]
    assert growth.codes({"a": MOST_PARTITIONS + 2}) == [("a", TOO_LARGE)]


def test_what_a_controller_rejects_at_once_is_forwarded() -> None:
    """An assignment of other than the new partitions, and a topic that the request names twice."""
    growth = Growth({"a": 2})
    assert growth.codes({"a": 2**31 - 1}, assignments={"a": [[1], [1]]}) == [("a", 0)]
