"""check_request: which requests are rejected, and of whom."""

from typing import Any, Final

import kio.schema.delete_topics.v6.request as delete_topics
import pytest
from kio.static.primitive import i32Timedelta

from proxy.relay.requests.request_checks import check_request
from proxy.relay.settings import RelaySettings
from proxy.wire.errors import Malformed
from proxy.wire.keyed.topic_names import UNNAMED_AT_MOST
from tests.support.messages.random_messages import sample
from tests.support.messages.received import received

FRAME_BYTES: Final = 1 << 20


def check(settings: RelaySettings, message: Any) -> None:
    """Check a request."""
    frame, header, body_at = received(message)
    check_request(settings, frame, header, body_at)


def topics_by_id(number: int) -> Any:
    """DeleteTopics of so many topics by id."""
    message = sample(delete_topics.DeleteTopicsRequest)
    topic = sample(delete_topics.DeleteTopicState)
    return type(message)(
        topics=tuple(type(topic)(name=None, topic_id=topic.topic_id) for _ in range(number)),
        timeout=i32Timedelta.parse(message.timeout),
    )


def test_a_client_may_name_so_many_topics_by_id() -> None:
    with pytest.raises(Malformed):
        check(RelaySettings(max_frame_bytes=FRAME_BYTES), topics_by_id(UNNAMED_AT_MOST + 1))


def test_the_setting_changes_how_many() -> None:
    settings = RelaySettings(max_frame_bytes=FRAME_BYTES, max_topics_by_id=2 * UNNAMED_AT_MOST)
    check(settings, topics_by_id(2 * UNNAMED_AT_MOST))


def test_the_names_of_a_broker_are_not_checked() -> None:
    settings = RelaySettings(max_frame_bytes=FRAME_BYTES, between_brokers=True)
    check(settings, topics_by_id(UNNAMED_AT_MOST + 1))
