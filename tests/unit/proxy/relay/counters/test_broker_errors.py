"""The error codes of a broker's responses are counted once each, whole or cut through."""

from dataclasses import replace

from kio.schema.errors import ErrorCode

from proxy.quota.engine import QuotaEngine
from proxy.relay.counters.broker_errors import BrokerErrors
from proxy.relay.counters.traffic import MAX_ERROR_CODE, Traffic
from proxy.wire.api_keys import FETCH, PRODUCE
from proxy.wire.error_codes import UNKNOWN_SERVER_ERROR
from proxy.wire.views import ResponseView
from tests.support.messages.exchanges import chunks, fetch, fetch_response, produce, produced
from tests.support.messages.kio_messages import Ports, response_frame
from tests.support.present import present
from tests.support.stories.playbook import Playbook, drive

NODE_ID = 3
NOT_LEADER = int(ErrorCode.not_leader_or_follower)
SESSION_GONE = int(ErrorCode.fetch_session_id_not_found)


def story_of(traffic: Traffic) -> Playbook:
    return Playbook(drive(QuotaEngine([]), Ports(), traffic, node_id=NODE_ID))


def with_errors(records: bytes, version: int = 17) -> bytes:
    """A response with an error of its own and one of its partition."""
    message = fetch_response(version, records, error_code=ErrorCode.fetch_session_id_not_found)
    (topic,) = message.responses
    (partition,) = topic.partitions
    partition = replace(partition, error_code=ErrorCode.not_leader_or_follower)
    return response_frame(replace(message, responses=(replace(topic, partitions=(partition,)),)), 1)


def test_errors_of_a_response_and_of_its_partitions() -> None:
    traffic = Traffic()
    story_of(traffic).client(fetch(1, version=17)).broker(with_errors(b""))
    assert traffic.broker_errors == {(NODE_ID, FETCH, SESSION_GONE): 1, (NODE_ID, FETCH, NOT_LEADER): 1}


def test_a_response_that_is_cut_through() -> None:
    traffic = Traffic()
    story = story_of(traffic).client(fetch(1, version=17))
    for part in chunks(with_errors(bytes(3 << 20)), 1 << 16):
        story.broker(part)
    assert traffic.broker_errors == {(NODE_ID, FETCH, SESSION_GONE): 1, (NODE_ID, FETCH, NOT_LEADER): 1}


def test_a_response_without_errors() -> None:
    traffic = Traffic()
    story_of(traffic).client(produce(1)).broker(produced(1))
    assert traffic.broker_errors == {}


def test_errors_are_taken_once() -> None:
    traffic = Traffic()
    errors = BrokerErrors(traffic, NODE_ID)
    view = ResponseView(7, False, 0)
    view.note_error(NOT_LEADER)
    view.note_error(0)
    errors.take(PRODUCE, view)
    errors.take(PRODUCE, view)
    errors.count(PRODUCE, 0)
    errors.count(PRODUCE, NOT_LEADER)
    assert traffic.broker_errors == {(NODE_ID, PRODUCE, NOT_LEADER): 2}


def test_a_code_that_occurs_in_a_row_is_kept_once() -> None:
    """A response may have it for thousands of partitions."""
    traffic = Traffic()
    view = ResponseView(7, False, 0)
    for error_code in [NOT_LEADER] * 5000 + [SESSION_GONE] + [NOT_LEADER] * 2:
        view.note_error(error_code)
    assert [(error.error_code, error.times) for error in present(view.errors)] == [
        (NOT_LEADER, 5000),
        (SESSION_GONE, 1),
        (NOT_LEADER, 2),
    ]
    BrokerErrors(traffic, NODE_ID).take(FETCH, view)
    assert traffic.broker_errors == {
        (NODE_ID, FETCH, NOT_LEADER): 5002,
        (NODE_ID, FETCH, SESSION_GONE): 1,
    }


def test_codes_that_kafka_does_not_have_count_as_one() -> None:
    traffic = Traffic()
    for error_code in (-2, -32768, MAX_ERROR_CODE + 1, 32767):
        traffic.count_broker_error(NODE_ID, PRODUCE, error_code)
    assert traffic.broker_errors == {(NODE_ID, PRODUCE, UNKNOWN_SERVER_ERROR): 4}
