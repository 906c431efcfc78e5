"""RequestBuffer: which requests have to be whole, and whose memory they use."""

import pytest

from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE, PRODUCER_BYTE_RATE_ACTION, REJECT
from proxy.quota.limits.resources import NO_RESOURCES, Resources
from proxy.relay.budgets.large_frames import LargeFrames
from proxy.relay.close_reasons import RelayError
from proxy.relay.counters.broker_errors import BrokerErrors
from proxy.relay.counters.traffic import Traffic
from proxy.relay.frame_buffer import MAX_BUFFERED_FRAME_BYTES
from proxy.relay.inflight import InFlight
from proxy.relay.intercepted import MAX_INTERCEPTED_REQUEST_BYTES
from proxy.relay.login.authentication import Authentication, Login
from proxy.relay.output import RelayOutput
from proxy.relay.requests.buffer import LARGE_FRAME_SECONDS, RequestBuffer
from proxy.wire.api_keys import FETCH, METADATA, PRODUCE, SHARE_FETCH
from proxy.wire.frames import Frame
from tests.support.messages.exchanges import TOPIC, opaque
from tests.support.present import present
from tests.support.stories.playbook import EVERYONE, START, engine

WHO = Identity("alice", "c", "10.0.0.1")

OWN = 42
MIB = 1 << 20
LARGE = MAX_BUFFERED_FRAME_BYTES + 1
SOME = 2 * MIB
REJECTING = Resources({TOPIC: {PRODUCER_BYTE_RATE.name: "1000", PRODUCER_BYTE_RATE_ACTION.name: REJECT}})
LIMITED = {EVERYONE: {"consumer_byte_rate": 1000.0}}


class Side:
    def __init__(
        self,
        quotas: dict[QuotaEntity, dict[str, float]] | None = None,
        resources: Resources = NO_RESOURCES,
        *,
        logs_in: bool = False,
        frames: LargeFrames | None = None,
    ) -> None:
        traffic = Traffic()
        self.output = RelayOutput()
        quota_engine = engine(quotas or {}, resources=resources)
        in_flight = InFlight(quota_engine, traffic, self.output)
        self.authentication = None
        if logs_in:
            self.authentication = Authentication(
                Login("sub", ""), traffic, in_flight, "127.0.0.1", BrokerErrors(traffic, 1)
            )
        self.frames = frames or LargeFrames()
        self.buffer = RequestBuffer(
            quota_engine, self.output, self.authentication, frozenset([OWN]), self.frames
        )


def part(api_key: int, size: int = 2 * MIB) -> Frame:
    return Frame([opaque(1, api_key)], size, False)


# quotas, resources, API, size, whether such a request has to be whole
CASES = [
    ({}, NO_RESOURCES, PRODUCE, 2 * MIB, False),
    ({}, REJECTING, PRODUCE, 2 * MIB, True),
    ({}, REJECTING, PRODUCE, LARGE, True),
    ({}, NO_RESOURCES, FETCH, 2 * MIB, False),
    (LIMITED, NO_RESOURCES, FETCH, 2 * MIB, True),
    (LIMITED, NO_RESOURCES, FETCH, LARGE, False),
    (LIMITED, NO_RESOURCES, SHARE_FETCH, 2 * MIB, True),
    ({}, NO_RESOURCES, OWN, 2 * MIB, True),
    ({}, NO_RESOURCES, OWN, MAX_INTERCEPTED_REQUEST_BYTES + 1, False),
    ({}, NO_RESOURCES, METADATA, 2 * MIB, False),
]


@pytest.mark.parametrize(("quotas", "resources", "api_key", "size", "whole"), CASES)
def test_which_requests_have_to_be_whole(
    quotas: dict[QuotaEntity, dict[str, float]], resources: Resources, api_key: int, size: int, whole: bool
) -> None:
    assert Side(quotas, resources).buffer.takes(part(api_key, size), False) == whole


@pytest.mark.parametrize("reads_fetches", [False, True])
def test_fetches_have_to_be_whole_if_they_are_read(reads_fetches: bool) -> None:
    assert Side().buffer.takes(part(FETCH), reads_fetches) == reads_fetches


@pytest.mark.parametrize("api_key", [PRODUCE, FETCH, OWN])
def test_nothing_is_buffered_before_the_login(api_key: int) -> None:
    side = Side(LIMITED, REJECTING, logs_in=True)
    assert not side.buffer.takes(part(api_key), False)
    present(side.authentication).done = True
    assert side.buffer.takes(part(api_key), False)
    present(side.authentication).raw = True
    assert not side.buffer.takes(part(api_key), False)


@pytest.mark.parametrize("api_key", [FETCH, SHARE_FETCH])
def test_fetches_use_memory_of_the_connection(api_key: int) -> None:
    side = Side()
    first = part(api_key, MAX_BUFFERED_FRAME_BYTES)
    assert side.buffer.begin(first, WHO, START)
    assert (side.buffer.due_at, side.frames.reserved, side.buffer.shared) == (0.0, 0, False)
    whole = present(side.buffer.add(Frame([b"two"], MAX_BUFFERED_FRAME_BYTES, True)))
    assert whole.pieces == [*first.pieces, b"two"]


@pytest.mark.parametrize("api_key", [PRODUCE, OWN])
def test_other_requests_use_shared_memory_until_the_broker_has_them(api_key: int) -> None:
    side = Side()
    assert side.buffer.begin(part(api_key, SOME), WHO, START)
    assert (side.buffer.due_at, side.frames.reserved) == (START + LARGE_FRAME_SECONDS, SOME)
    assert side.buffer.shared
    side.output.send_to_broker([b"one"])
    side.buffer.forwarded_large()
    assert (side.output.holds_memory, side.frames.reserved, side.buffer.shared) == (True, SOME, False)
    side.buffer.give_memory_back()
    assert (side.output.holds_memory, side.output.to_broker, side.frames.reserved) == (False, [], 0)


def test_a_produce_request_of_which_nothing_is_forwarded_gives_memory_back_at_once() -> None:
    side = Side()
    side.buffer.begin(part(PRODUCE, SOME), WHO, START)
    side.buffer.forwarded_large()
    assert (side.output.holds_memory, side.frames.reserved) == (False, 0)


@pytest.mark.parametrize("how", ["begins", "leaves the line", "ends"])
def test_a_request_without_memory_waits_in_line(how: str) -> None:
    frames = LargeFrames(LARGE)
    first, second = Side(frames=frames), Side(frames=frames)
    first.buffer.begin(part(PRODUCE, LARGE), WHO, START)
    waiting = part(PRODUCE, LARGE)
    assert not second.buffer.begin(waiting, WHO, START)
    assert START < second.buffer.due_at < START + LARGE_FRAME_SECONDS
    with pytest.raises(RelayError):
        first.buffer.check_pace(START + LARGE_FRAME_SECONDS)
    first.buffer.end()
    assert second.buffer.take_waiting() is waiting
    if how == "begins":
        assert second.buffer.begin(waiting, WHO, START + 1.0)
    elif how == "leaves the line":
        second.buffer.leave_line()
    else:
        second.buffer.end()
    assert frames.reserved == (LARGE if how == "begins" else 0)
    assert not frames.wanted


def test_a_late_request_for_whose_memory_nobody_waits_goes_on() -> None:
    side = Side()
    side.buffer.begin(part(PRODUCE, LARGE), WHO, START)
    side.buffer.check_pace(START + LARGE_FRAME_SECONDS)
    assert side.buffer.due_at == START + LARGE_FRAME_SECONDS + 1.0
