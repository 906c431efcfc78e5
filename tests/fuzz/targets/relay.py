"""A relay between two peers that send anything: it forwards, or ends the connection with RelayError.

Input: the world (which quotas, which APIs), then steps: what happens, and bytes with their length in front.
"""

from collections.abc import Callable, Iterator
from typing import Final

from proxy.admin.dispatch import APIS, AdminApis
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.limits.config_keys import (
    CONSUMER_BYTE_RATE,
    CONSUMER_BYTE_RATE_ACTION,
    FOLLOWER_THROTTLED,
    LEADER_THROTTLED,
    LEADER_THROTTLED_RATE,
    PRODUCER_BYTE_RATE,
    PRODUCER_BYTE_RATE_ACTION,
    TOPIC_CONSUMER_BYTE_RATE,
    TOPIC_CONSUMER_BYTE_RATE_ACTION,
    TOPIC_PRODUCER_BYTE_RATE,
    TOPIC_PRODUCER_BYTE_RATE_ACTION,
)
from proxy.quota.limits.enforcement import PACE, WINDOW
from proxy.quota.limits.resources import DEFAULT_RESOURCE, Resources
from proxy.quota.verdict import Verdict
from proxy.relay.budgets.group_members import GroupMembers
from proxy.relay.close_reasons import RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.relay.login.authentication import Login
from proxy.wire.addresses import Addresses
from proxy.wire.protected_topics import ProtectedTopics
from proxy.wire.topic_names import TopicNames
from tests.fuzz.harness import Data, Target, cut, part
from tests.support.messages.exchanges import produce, record_batch
from tests.support.messages.kio_messages import (
    framed,
    request_frame,
    request_type,
    response_frame,
    response_type,
    versions,
)
from tests.support.messages.random_messages import sample
from tests.support.stories.playbook import START, RelayDriver, drive, engine

HEAD: Final = 8
"""Of a frame: its length and, in a response, its correlation id."""
REQUEST_HEAD: Final = 12
MAX_STEPS: Final = 200
STREAMED: Final = produce(1, size=150_000, version=9)
"""A request that is forwarded while it arrives, if the shell can splice."""
SLOW: Final[dict[QuotaEntity, dict[str, float]]] = {
    QuotaEntity(DEFAULT, None): {"producer_byte_rate": 1000.0, "consumer_byte_rate": 1000.0},
    QuotaEntity(None, DEFAULT): {"request_percentage": 1.0},
}


def _limited(produce: str, consume: str) -> Resources:
    return Resources(
        {
            DEFAULT_RESOURCE: {
                PRODUCER_BYTE_RATE.name: "10",
                CONSUMER_BYTE_RATE.name: "10",
                PRODUCER_BYTE_RATE_ACTION.name: produce,
                CONSUMER_BYTE_RATE_ACTION.name: consume,
                TOPIC_PRODUCER_BYTE_RATE.name: "15",
                TOPIC_CONSUMER_BYTE_RATE.name: "15",
                TOPIC_PRODUCER_BYTE_RATE_ACTION.name: produce,
                TOPIC_CONSUMER_BYTE_RATE_ACTION.name: consume,
            }
        }
    )


REPLICATION: Final = Resources(
    {},
    {
        DEFAULT_RESOURCE: {
            LEADER_THROTTLED.name: "true",
            FOLLOWER_THROTTLED.name: "true",
            LEADER_THROTTLED_RATE.name: "100",
        }
    },
)


class Names(TopicNames):
    """Knows the topics whose ids end with 5, and has asked for those that end with 6."""

    looks = 0

    @property
    def asks(self) -> bool:
        return True

    @property
    def responses(self) -> int:
        return self.looks // 8

    def hides(self, topic_id: bytes) -> bool:
        return topic_id[-1] == 7

    def look_up(self, topic_id: bytes) -> str:
        self.looks += 1
        return "text" if topic_id[-1] == 5 else ""

    def awaits(self, topic_id: bytes) -> bool:
        return topic_id[-1] == 6


def _plain() -> RelayDriver:
    return drive(engine({}), Addresses(), Traffic(), group_members=GroupMembers(10_000))


def _paced() -> RelayDriver:
    return drive(engine(SLOW, PACE), Addresses(), Traffic(True), apis=APIS, topic_names=Names())


def _windowed() -> RelayDriver:
    limits = engine(SLOW, WINDOW, _limited("throttle", "throttle"))
    return drive(limits, Addresses(), Traffic(True), topic_names=Names())


def _rejecting() -> RelayDriver:
    limits = engine({}, resources=_limited("reject", "omit"))
    return drive(limits, Addresses(), Traffic(True), apis=APIS, topic_names=Names())


def _intercepting() -> RelayDriver:
    protected = ProtectedTopics(frozenset(["__quota_proxy_config", "texu"]))
    return drive(
        engine(SLOW),
        Addresses(),
        Traffic(),
        apis=APIS,
        intercepted_api_keys=AdminApis.api_keys,
        protected=protected,
        topic_names=Names(),
    )


def _login() -> RelayDriver:
    return drive(engine(SLOW), Addresses(), Traffic(), apis=APIS, login=Login("sub", ""))


def _brokers() -> RelayDriver:
    limits = engine({}, resources=REPLICATION)
    return drive(limits, Addresses(False), Traffic(), between_brokers=True, node_id=1, topic_names=Names())


WORLDS: Final[tuple[Callable[[], RelayDriver], ...]] = (
    _plain,
    _paced,
    _windowed,
    _rejecting,
    _intercepting,
    _login,
    _brokers,
)
PLAIN: Final = 0
LOGIN: Final = 5


class Stream:
    """Takes a stream of frames apart: each frame's first bytes."""

    def __init__(self, head: int) -> None:
        self.heads: Final[list[bytes]] = []
        self._head: Final = head
        self._buffer = bytearray()
        self._skip = 0

    def feed(self, data: bytes) -> None:
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        self._buffer += data[skipped:]
        while len(self._buffer) >= 4:
            size = 4 + int.from_bytes(self._buffer[:4], "big")
            wanted = min(self._head, size)
            if len(self._buffer) < wanted:
                return
            self.heads.append(bytes(self._buffer[:wanted]))
            self._skip = max(size - len(self._buffer), 0)
            del self._buffer[:size]

    def forward(self, size: int) -> None:
        """So many bytes of the stream are not fed."""
        assert size <= self._skip, "bytes beyond the frame's end were spliced"
        self._skip -= size


class Story:
    """A connection, and what has come out of it."""

    def __init__(self, world: int) -> None:
        self.relay: Final = WORLDS[world]()
        self._world: Final = world
        self._now = START
        self._from_client = Stream(REQUEST_HEAD)
        self._to_broker = Stream(REQUEST_HEAD)
        self._to_client = Stream(HEAD)
        self._sent = bytearray()
        self._forwarded = bytearray()
        self._asked: bytes = b""
        self._local = False

    def step(self, what: int, data: bytes) -> None:
        relay, now = self.relay, self._now
        if what in (0, 1, 2):
            self._client(cut(data if what == 0 else framed(data), what // 2 * (1 + len(data))))
        elif what == 3:
            self._client(cut(_large(data), 0))
        elif what in (4, 5, 6):
            whole = data if what == 4 else framed(self._correlation() + data)
            self._broker(cut(whole, what // 6 * (1 + len(data))))
        elif what == 7:
            self._broker([_large(self._correlation() + data)])
        elif what == 8 and relay.next_timer > 0.0:
            due = relay.next_timer
            self._now = max(now, due)
            relay.handle_timer(self._now)
            assert relay.next_timer == 0.0 or relay.next_timer > due, "a timer that has run is still due"
        elif what == 9:
            self._now += data[0] / 10 if data else 0.1
        elif what == 10:
            for request in relay.take_intercepted():
                frame = framed(int(request.header.correlation_id).to_bytes(4, "big", signed=True) + data)
                self._local = True
                relay.answer(request.exchange, frame, now, Verdict(len(data) % 3), len(data) % 2)
        elif what == 11:
            relay.drain(now)
        elif what == 12:
            relay.broker_reached(now)
        else:
            self._splice(what, data)
        self._take()

    def _splice(self, what: int, data: bytes) -> None:
        """Let bytes go past the relay."""
        relay = self.relay
        if what == 13 and relay.forwardable > 0:
            size = min(relay.forwardable, 1 + len(data))
            relay.forwarded(size)
            self._to_client.forward(size)
        elif what == 14:
            relay.stream_requests()
            self._client([STREAMED[: 70_000 + len(data)]])
        elif what == 15 and relay.request_forwardable > 0:
            size = min(relay.request_forwardable, 1 + len(data))
            relay.request_forwarded(size)
            self._from_client.forward(size)
            self._to_broker.forward(size)
            self._sent += bytes(size)
            self._forwarded += bytes(size)

    def _client(self, pieces: list[bytes]) -> None:
        for piece in pieces:
            self._sent += piece
            self._from_client.feed(piece)
            self.relay.receive_from_client(piece, self._now)
            self._take(from_client=True)

    def _broker(self, pieces: list[bytes]) -> None:
        for piece in pieces:
            self.relay.receive_from_broker(piece, self._now)
            self._take()

    def _correlation(self) -> bytes:
        """Of the request whose response is due next."""
        heads = self._to_broker.heads
        answered = len(self._to_client.heads)
        return heads[min(answered, len(heads) - 1)][8:12] if heads else b"\0\0\0\1"

    def _take(self, from_client: bool = False) -> None:
        to_broker = b"".join(self.relay.take_to_broker())
        to_client = b"".join(self.relay.take_to_client())
        self.relay.take_broker_responses()
        self._local = self._local or (from_client and bool(to_client))
        self._forwarded += to_broker
        self._to_broker.feed(to_broker)
        self._to_client.feed(to_client)

    def check(self) -> None:
        """What came out is made of the frames that went in, in their order."""
        if self._world == PLAIN and not self._local:
            assert self._sent.startswith(self._forwarded), "what no quota is about was changed"
        if self._world == LOGIN:
            return  # the messages of a login may be bare
        sent = [head[8:12] for head in self._from_client.heads]
        _in_order([head[8:12] for head in self._to_broker.heads], sent)
        _in_order([head[4:8] for head in self._to_client.heads], sent)

    def end(self) -> None:
        self.relay.end()


def _in_order(some: list[bytes], of: list[bytes]) -> None:
    rest = iter(of)
    assert all(one in rest for one in some), f"{some} came out of {of}"


def _large(data: bytes) -> bytes:
    """A frame that is cut through. Zeros would be very many empty topics, which are slow to read."""
    return framed(data + b"\x7f" * ((1 << 20) + 4096 * (len(data) % 7)))


def run(data: bytes) -> None:
    given = Data(data)
    story = Story(given.byte() % len(WORLDS))
    steps = 0
    try:
        while given.left > 0 and steps < MAX_STEPS:
            story.step(given.byte() % 16, given.part())
            steps += 1
    except RelayError as error:
        if not (error.reason and str(error)):
            raise
    else:
        story.check()
    story.end()


CLIENT, PIECES, LARGE, BROKER, TIMER, CLOCK, ANSWER, SPLICE = 1, 2, 3, 5, 8, 9, 10, 13
STREAM, SPLICE_REQUEST = 14, 15


def _step(what: int, data: bytes = b"") -> bytes:
    return bytes([what]) + part(data)


def seeds() -> Iterator[bytes]:
    for api in APIS.known:
        if api is None:
            continue
        for version in versions(api.key)[:: max(len(versions(api.key)) // 4, 1)]:
            request = request_frame(sample(request_type(api.key, version)))[4:]
            response = response_frame(sample(response_type(api.key, version)))[8:]
            for world in {PLAIN, 1 + (api.key + version) % (len(WORLDS) - 1)}:
                exchange = _step(CLIENT + version % 2, request) + _step(BROKER + version % 2, response)
                rest = _step(ANSWER, response) + _step(TIMER) + _step(CLOCK, b"\5")
                yield bytes([world]) + exchange + rest + exchange
    yield from _large_ones()


def _large_ones() -> Iterator[bytes]:
    for key, version in ((0, 7), (0, 13), (1, 11), (1, 17), (3, 12)):
        request = request_frame(sample(request_type(key, version)))[4:]
        response = response_frame(sample(response_type(key, version)))[8:]
        for world in range(len(WORLDS)):
            yield (
                bytes([world])
                + _step(LARGE, request)
                + _step(7, response)
                + _step(SPLICE, bytes(1000))
                + _step(TIMER)
            )
    for world in range(len(WORLDS)):
        spliced = _step(SPLICE_REQUEST, bytes(1000)) * 80
        yield bytes([world]) + _step(STREAM) + spliced + _step(CLIENT, bytes(1000)) * 3 + _step(TIMER)


WORDS: Final = (record_batch(100)[:80], b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5", b"__quota_proxy_config")
TARGET: Final = Target(run, seeds, WORDS)
