"""Order, pipelining, acks=0, and local responses."""

from collections.abc import Callable
from struct import pack

from proxy.quota.limits.resources import Resources
from proxy.relay.budgets.read_turns import FRAMES, FREE_FRAMES, LARGE_BYTES, PAUSE_SECONDS, ReadTurns
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR
from proxy.relay.counters.traffic import Traffic
from proxy.relay.inflight import FREE_IN_FLIGHT, MAX_IN_FLIGHT, SHARED_IN_FLIGHT, InFlightRoom
from proxy.relay.requests.unsupported_version import unsupported_api_versions
from tests.support.messages.exchanges import (
    TOPIC,
    api_versions,
    fetch,
    fetched,
    opaque,
    produce,
    produced,
    responded,
)
from tests.support.messages.kio_messages import Ports
from tests.support.stories.playbook import EVERYONE, Playbook, RelayDriver, drive, engine, new_relay


def test_a_request_and_its_response_pass() -> None:
    story = Playbook(new_relay()).idle()
    story.client(produce(1)).to_broker(produce(1)).busy()
    story.broker(produced(1)).to_client(produced(1)).to_broker().unmuted().timer(None).idle()


def test_pipelined_requests_pass_at_once_and_get_responses_in_order() -> None:
    story = Playbook(new_relay())
    story.client(produce(1) + fetch(2) + opaque(3)).to_broker(produce(1), fetch(2), opaque(3)).to_client()
    story.broker(produced(1) + fetched(2)).to_client(produced(1), fetched(2)).busy()
    story.broker(responded(3)).to_client(responded(3)).idle()


def test_half_a_request_waits_for_the_rest() -> None:
    story = Playbook(new_relay())
    request = produce(1)
    story.client(request[:3]).to_broker().busy()
    story.client(request[3:50]).to_broker().busy()
    assert story.relay.status.request_unfinished
    story.client(request[50:]).to_broker(request)
    assert not story.relay.status.request_unfinished
    response = produced(1)
    story.broker(response[:10]).to_client().broker(response[10:]).to_client(response).idle()


def test_any_cut_of_the_bytes_gives_the_same_bytes() -> None:
    requests = produce(1) + fetch(2) + opaque(3)
    responses = produced(1) + fetched(2) + responded(3)
    story = Playbook(new_relay())
    story.client(*[requests[at : at + 1] for at in range(len(requests))]).to_broker(requests)
    story.broker(*[responses[at : at + 1] for at in range(len(responses))]).to_client(responses).idle()


def test_acks_0_expects_no_response() -> None:
    story = Playbook(new_relay())
    story.client(produce(1, acks=0)).to_broker(produce(1, acks=0)).idle()
    story.client(produce(2) + produce(3, acks=0) + produce(4))
    story.to_broker(produce(2), produce(3, acks=0), produce(4))
    story.broker(produced(2) + produced(4)).to_client(produced(2), produced(4)).idle()


def test_acks_all_expects_one() -> None:
    story = Playbook(new_relay()).client(produce(1, acks=-1)).to_broker(produce(1, acks=-1)).busy()
    story.broker(produced(1)).to_client(produced(1)).idle()


def test_a_local_response_comes_at_once_when_nothing_is_before_it() -> None:
    story = Playbook(new_relay()).client(api_versions(7)).to_broker()
    story.to_client(unsupported_api_versions(7, 0, 4)).idle()


def test_a_local_response_waits_for_its_turn_between_two_others() -> None:
    story = Playbook(new_relay())
    story.client(produce(1) + api_versions(2) + fetch(3)).to_broker(produce(1), fetch(3)).to_client()
    story.broker(produced(1)).to_client(produced(1), unsupported_api_versions(2, 0, 4)).busy()
    story.broker(fetched(3)).to_client(fetched(3)).idle()


def test_several_local_responses_keep_their_places() -> None:
    story = Playbook(new_relay())
    story.client(api_versions(1) + api_versions(2) + produce(3) + api_versions(4) + api_versions(5))
    story.to_broker(produce(3))
    story.to_client(unsupported_api_versions(1, 0, 4), unsupported_api_versions(2, 0, 4))
    responses = [unsupported_api_versions(4, 0, 4), unsupported_api_versions(5, 0, 4)]
    story.broker(produced(3)).to_client(produced(3), *responses).idle()


def test_an_opaque_api_passes_untouched_at_any_version() -> None:
    story = Playbook(new_relay())
    for correlation_id, (key, version) in enumerate([(2, 0), (17, 1), (127, 32767), (128, 5), (32767, 0)]):
        request = opaque(correlation_id, key, version, bytes(range(256)))
        response = responded(correlation_id, bytes(range(256)))
        story.client(request).to_broker(request).broker(response).to_client(response).idle()


def test_a_client_without_a_client_id_passes() -> None:
    request = produce(1, client_id=None)
    Playbook(new_relay()).client(request).to_broker(request).broker(produced(1)).to_client(produced(1)).idle()


def test_the_first_request_counts_when_it_is_whole() -> None:
    story = Playbook(new_relay())
    request = opaque(1)
    assert not story.client(request[:-1]).relay.status.first_request_seen
    assert story.client(request[-1:]).relay.status.first_request_seen


def sharing(turns: ReadTurns) -> RelayDriver:
    """A relay that shares its turns of the event loop with others."""
    return drive(engine({}), Ports(), Traffic(), request_turns=turns)


def send_ahead(story: Playbook, requests: list[bytes]) -> Playbook:
    """Send requests in as many turns of the event loop as it takes to read them all."""
    for turn, start in enumerate(range(0, len(requests), FRAMES)):
        some = requests[start : start + FRAMES]
        story.at(turn * PAUSE_SECONDS).client(b"".join(some)).to_broker(*some)
    return story


def test_a_client_that_pipelines_without_end_is_read_as_fast_as_it_gets_responses() -> None:
    requests = [opaque(number, body=b"") for number in range(MAX_IN_FLIGHT + 3)]
    story = send_ahead(Playbook(new_relay()), requests[:MAX_IN_FLIGHT])
    story.client(b"".join(requests[MAX_IN_FLIGHT:])).to_broker()
    assert story.relay.client_muted
    story.timer(None).broker(responded(0)).to_client(responded(0)).to_broker(requests[MAX_IN_FLIGHT])
    assert story.relay.client_muted
    story.broker(responded(1) + responded(2) + responded(3)).to_broker(
        *requests[MAX_IN_FLIGHT + 1 :]
    ).unmuted()


def test_clients_that_pipeline_without_end_leave_each_other_a_few_requests() -> None:
    room = InFlightRoom()
    requests = [opaque(number, body=b"") for number in range(MAX_IN_FLIGHT)]
    for _ in range(SHARED_IN_FLIGHT // (MAX_IN_FLIGHT - FREE_IN_FLIGHT) + 1):
        story = Playbook(drive(engine({}), Ports(), Traffic(), in_flight_room=room))
        for turn, request in enumerate(requests):
            story.at(turn * PAUSE_SECONDS).client(request)
    other = Playbook(drive(engine({}), Ports(), Traffic(), in_flight_room=room))
    few = requests[:FREE_IN_FLIGHT]
    for turn, request in enumerate(few):
        other.at(turn * PAUSE_SECONDS).client(request).to_broker(request)
    other.client(requests[FREE_IN_FLIGHT]).to_broker()
    assert other.relay.client_muted
    other.broker(responded(0)).to_client(responded(0)).to_broker(requests[FREE_IN_FLIGHT])


def test_what_waits_for_room_waits_for_the_end_of_a_mute_too() -> None:
    requests = [opaque(number, body=b"") for number in range(MAX_IN_FLIGHT - 1)]
    slow = produce(5000, size=3000)
    story = send_ahead(Playbook(new_relay({EVERYONE: {"producer_byte_rate": 1000.0}})), requests)
    sent_at = (len(requests) - 1) // int(FRAMES) * PAUSE_SECONDS
    story.client(slow + opaque(6000)).to_broker(slow).muted(sent_at + 2.0)
    story.broker(responded(0) + responded(1)).to_broker()
    story.at(sent_at + 2.0).to_broker(opaque(6000)).unmuted()


def test_a_client_that_pipelines_lets_others_have_their_turn() -> None:
    requests = [opaque(number, body=b"") for number in range(2 * FRAMES)]
    story, other = Playbook(new_relay()), Playbook(new_relay())
    at_once = FREE_FRAMES + FRAMES
    story.client(b"".join(requests)).to_broker(*requests[:at_once]).muted(PAUSE_SECONDS)
    other.client(b"".join(requests)).to_broker(*requests[:at_once])
    story.at(PAUSE_SECONDS).to_broker(*requests[at_once:]).unmuted().timer(None)


def test_many_clients_that_pipeline_have_one_turn_together() -> None:
    turns = ReadTurns(None)
    stories = [Playbook(sharing(turns)) for _ in range(20)]
    requests = [opaque(number, body=b"") for number in range(2 * FRAMES)]
    read = 0
    for story in stories:
        story.client(b"".join(requests))
        read += len(b"".join(story.relay.take_to_broker())) // len(requests[0])
    assert read == FRAMES + len(stories) * FREE_FRAMES


def test_a_few_requests_are_read_at_once_whatever_others_send() -> None:
    turns = ReadTurns(None)
    Playbook(sharing(turns)).client(b"".join(opaque(n, body=b"") for n in range(2 * FRAMES)))
    few = [opaque(number, body=b"") for number in range(FREE_FRAMES - 1)]
    Playbook(sharing(turns)).client(b"".join(few)).to_broker(*few).unmuted().timer(None)


def sharing_responses(turns: ReadTurns) -> RelayDriver:
    """A relay that shares with others the turns in which it reads responses."""
    return drive(engine({}), Ports(), Traffic(), response_turns=turns)


def numbered(make: Callable[[int], bytes], number: int) -> list[bytes]:
    """So many messages with correlation_ids from 0."""
    return [make(correlation_id) for correlation_id in range(number)]


def small(correlation_id: int) -> bytes:
    return opaque(correlation_id, body=b"")


def test_responses_that_arrive_together_let_others_have_their_turn() -> None:
    number = 3 * FRAMES
    story, other = Playbook(new_relay()), Playbook(new_relay())
    send_ahead(story, numbered(small, number))
    send_ahead(other, numbered(small, number))
    start = 3 * PAUSE_SECONDS
    responses = numbered(responded, number)
    story.at(start).broker(b"".join(responses))
    story.to_client(*responses[: FREE_FRAMES + FRAMES]).timer(start + PAUSE_SECONDS).busy()
    assert story.relay.broker_paused
    other.at(start).broker(b"".join(responses)).to_client(*responses[: FREE_FRAMES + FRAMES])
    story.at(start + PAUSE_SECONDS)
    story.to_client(*responses[FREE_FRAMES + FRAMES : 2 * (FREE_FRAMES + FRAMES)])
    story.at(start + 2 * PAUSE_SECONDS).to_client(*responses[2 * (FREE_FRAMES + FRAMES) :])
    story.timer(None).idle()
    assert not story.relay.broker_paused


def test_many_connections_whose_responses_arrive_together_have_one_turn_together() -> None:
    turns = ReadTurns(None)
    stories = [Playbook(sharing_responses(turns)) for _ in range(20)]
    responses = numbered(responded, FRAMES)
    for story in stories:
        send_ahead(story, numbered(small, FRAMES))
    read = 0
    for story in stories:
        story.at(PAUSE_SECONDS).broker(b"".join(responses))
        read += len(b"".join(story.relay.take_to_client())) // len(responses[0])
    assert read <= FRAMES + len(stories) * FREE_FRAMES
    few = Playbook(sharing_responses(turns)).client(b"".join(numbered(small, FREE_FRAMES)))
    few.at(PAUSE_SECONDS).broker(b"".join(responses[:FREE_FRAMES])).to_client(*responses[:FREE_FRAMES])
    few.timer(None).idle()


def test_bytes_that_arrive_during_a_pause_are_read_behind_the_others() -> None:
    number = FREE_FRAMES + 2 * FRAMES
    responses = numbered(responded, number)
    story = send_ahead(Playbook(new_relay()), numbered(small, number)).at(1.0)
    story.broker(b"".join(responses[:-1])).broker(responses[-1][:5], responses[-1][5:])
    story.to_client(*responses[: FREE_FRAMES + FRAMES])
    story.at(1.0 + 2 * PAUSE_SECONDS).to_client(*responses[FREE_FRAMES + FRAMES :]).timer(None).idle()


def test_a_pause_between_responses_is_no_mute() -> None:
    number = FREE_FRAMES + 2 * FRAMES
    responses = numbered(responded, number)
    story = send_ahead(Playbook(new_relay()), numbered(small, number)).at(1.0)
    story.broker(b"".join(responses)).to_client(*responses[: FREE_FRAMES + FRAMES]).unmuted()
    story.client(opaque(number)).to_broker(opaque(number))
    story.at(2.0).to_client(*responses[FREE_FRAMES + FRAMES :])
    story.broker(responded(number)).to_client(responded(number)).idle()


def many_partitions(partitions: int) -> bytes:
    """A response to Fetch v11 with as many partitions that do not exist."""
    body = pack(">iihi", 0, 0, 0, 1) + pack(">h", len(TOPIC)) + TOPIC.encode() + pack(">i", partitions)
    return responded(0, body + pack(">ihqqqiii", 0, 3, 0, 0, 0, 0, -1, 0) * partitions)


def fetching(turns: ReadTurns) -> Playbook:
    """A client that has sent a fetch, while quotas count by topic, and another request."""
    topics = Resources({TOPIC: {"consumer.byte.rate": "1000000000"}})
    story = Playbook(drive(engine({}, resources=topics), Ports(), Traffic(), response_turns=turns))
    return story.client(fetch(0) + opaque(1)).to_broker(fetch(0), opaque(1))


def test_a_response_with_many_partitions_counts_as_many() -> None:
    large = many_partitions((FRAMES + FREE_FRAMES) * 16)
    story = fetching(ReadTurns(None)).broker(large + responded(1)).to_client(large).timer(PAUSE_SECONDS)
    story.at(PAUSE_SECONDS).to_client(responded(1)).timer(None).idle()


def test_of_responses_with_many_partitions_on_several_connections_a_turn_reads_one() -> None:
    turns = ReadTurns(None)
    large = many_partitions((FRAMES + FREE_FRAMES) * 16)
    stories = [fetching(turns) for _ in range(3)]
    for story in stories:
        story.broker(large[:-20], large[-20:])
    stories[0].to_client(large)
    for turn, story in enumerate(stories[1:], 1):
        story.to_client().timer(turn * PAUSE_SECONDS).at(turn * PAUSE_SECONDS).to_client(large)
        stories[-1].at(turn * PAUSE_SECONDS)
    few = fetching(turns).at(2 * PAUSE_SECONDS).broker(fetched(0)).to_client(fetched(0))
    few.broker(responded(1)).to_client(responded(1)).timer(None).idle()


def test_of_requests_with_many_partitions_on_several_connections_a_turn_reads_one() -> None:
    turns = ReadTurns(None)
    partitions = max(FRAMES + FREE_FRAMES, LARGE_BYTES // 128) * 16
    body = pack(">hhi", -1, 1, 1000) + pack(">ih", 1, len(TOPIC)) + TOPIC.encode() + pack(">i", partitions)
    large = opaque(1, 0, 7, body + b"".join(pack(">ii", index, -1) for index in range(partitions)))
    topics = Resources({TOPIC: {"producer.byte.rate": "1000000000"}})
    stories = [
        Playbook(drive(engine({}, resources=topics), Ports(), Traffic(), request_turns=turns))
        for _ in range(3)
    ]
    for story in stories:
        story.client(large[:-20], large[-20:])
    stories[0].to_broker(large)
    for turn, story in enumerate(stories[1:], 1):
        story.to_broker().muted(turn * PAUSE_SECONDS).at(turn * PAUSE_SECONDS).to_broker(large)
        stories[-1].at(turn * PAUSE_SECONDS)
    few = Playbook(sharing(turns)).at(2 * PAUSE_SECONDS).client(produce(1)).to_broker(produce(1))
    few.unmuted().timer(None)


def test_the_broker_s_fault_behind_a_pause_ends_the_connection() -> None:
    number = FREE_FRAMES + FRAMES + 1
    story = send_ahead(Playbook(new_relay()), numbered(small, number)).at(1.0)
    story.broker(b"".join(numbered(responded, number - 1)) + responded(number + 7))
    story.fails_at(1.0 + PAUSE_SECONDS, BROKER_PROTOCOL_ERROR, "correlation_id")
