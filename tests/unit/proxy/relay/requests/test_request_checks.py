"""RequestChecks: which requests of a connection are rejected, and of whom."""

from typing import Any, Final

import kio.schema.delete_topics.v6.request as delete_topics
import pytest
from kio.static.primitive import i32Timedelta

from proxy.quota.identity import Identity
from proxy.relay.budgets.group_members import GroupMembers
from proxy.relay.requests.request_checks import RequestChecks
from proxy.relay.settings import RelaySettings
from proxy.wire.errors import Malformed
from proxy.wire.keyed.topic_names import UNNAMED_AT_MOST
from tests.support.messages.groups import join
from tests.support.messages.random_messages import sample
from tests.support.messages.received import received

ALICE: Final = Identity("alice", "app", "127.0.0.1")
FRAME_BYTES: Final = 1 << 20


def check(checks: RequestChecks, message: Any) -> None:
    """Check a request."""
    frame, header, body_at = received(message)
    checks.check(frame, header, body_at, ALICE, 10.0)


def topics_by_id(number: int) -> Any:
    """DeleteTopics of so many topics by id."""
    message = sample(delete_topics.DeleteTopicsRequest)
    topic = sample(delete_topics.DeleteTopicState)
    return type(message)(
        topics=tuple(type(topic)(name=None, topic_id=topic.topic_id) for _ in range(number)),
        timeout=i32Timedelta.parse(message.timeout),
    )


def test_a_client_may_name_so_many_topics_by_id() -> None:
    checks = RequestChecks(RelaySettings(max_frame_bytes=FRAME_BYTES), 1)
    with pytest.raises(Malformed):
        check(checks, topics_by_id(UNNAMED_AT_MOST + 1))


def test_the_setting_changes_how_many() -> None:
    settings = RelaySettings(max_frame_bytes=FRAME_BYTES, max_topics_by_id=2 * UNNAMED_AT_MOST)
    check(RequestChecks(settings, 1), topics_by_id(2 * UNNAMED_AT_MOST))


def test_the_names_of_a_broker_are_not_checked() -> None:
    settings = RelaySettings(max_frame_bytes=FRAME_BYTES, between_brokers=True)
    check(RequestChecks(settings, 1), topics_by_id(UNNAMED_AT_MOST + 1))


def test_members_of_groups_share_the_bytes_of_their_client() -> None:
    settings = RelaySettings(max_frame_bytes=FRAME_BYTES, group_members=GroupMembers(100_000))
    first, second = RequestChecks(settings, 1), RequestChecks(settings, 1)
    check(first, join("g", "m", 60_000))
    with pytest.raises(Malformed, match="max_group_member_bytes"):
        check(second, join("g", "n", 60_000))


def test_members_without_a_limit() -> None:
    checks = RequestChecks(RelaySettings(max_frame_bytes=FRAME_BYTES), 1)
    for member in "mn":
        check(checks, join("g", member, 500_000))
