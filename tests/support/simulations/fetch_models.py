"""A broker's fetch sessions and a Java client's side of them, as small as KIP-227 allows.

Logs hold one record per batch; a batch is its offset, a length and filling.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from proxy.wire.api_keys import FETCH
from tests.support.messages.kio_messages import read_frame, request_type, response_type
from tests.support.stories.fetching import COLD, HOT, MAX_BYTES, Partition, fetch, fetched, topic_id

BATCH_HEAD: Final = 12
NO_SESSION: Final = 0
FULL, FINAL = 0, -1
SESSION_ID_NOT_FOUND, INVALID_EPOCH = 70, 71
NAMES: Final = {topic_id(name): name for name in (HOT, COLD)}


def batch(offset: int, size: int) -> bytes:
    return offset.to_bytes(8, "big") + (size - BATCH_HEAD).to_bytes(4, "big") + bytes(size - BATCH_HEAD)


def offsets(records: bytes) -> list[int]:
    """The offsets of the whole batches. Clients discard a partial batch at the end."""
    found = []
    at = 0
    while at + BATCH_HEAD <= len(records):
        size = int.from_bytes(records[at + 8 : at + 12], "big") + BATCH_HEAD
        if at + size > len(records):
            break
        found.append(int.from_bytes(records[at : at + 8], "big"))
        at += size
    return found


def _topics(topics: Any) -> Any:
    """Each topic's name and its partitions."""
    for topic in topics:
        yield NAMES[topic.topic_id] if getattr(topic, "topic_id", None) else topic.topic, topic.partitions


@dataclass
class _Wanted:
    offset: int
    max_bytes: int
    told: int = -1
    """The last high watermark that the session was sent."""


@dataclass
class BrokerModel:
    """Responds to fetches as Kafka's FetchSession and ReplicaManager do."""

    version: int
    logs: dict[Partition, list[bytes]]
    sessions: dict[int, tuple[int, dict[Partition, _Wanted]]] = field(default_factory=dict)
    """By session id: the expected epoch, and the partitions."""
    emptied: int = 0
    """The number of requests that left a session without partitions."""
    has_room: bool = True
    """Whether new sessions are opened."""
    last_id: int = 1000
    probed: dict[Partition, bytes] = field(default_factory=dict)
    """What the last response had of the partitions that were requested with a partition_max_bytes of 0."""

    def respond(self, frame: bytes) -> tuple[bytes, float]:
        """Return the response, and the seconds after which the broker sends it."""
        self.probed = {}
        request = read_frame(request_type(FETCH, self.version), frame)
        correlation_id = int.from_bytes(frame[8:12], "big")
        session_id = getattr(request, "session_id", NO_SESSION)
        epoch = getattr(request, "session_epoch", FINAL)
        wanted: dict[Partition, _Wanted] = {}
        if epoch in (FULL, FINAL):
            self.sessions.pop(session_id, None)
            self._update(wanted, request)
            session_id = NO_SESSION
            if epoch == FULL and self.has_room and wanted:
                self.last_id += 1
                session_id = self.last_id
                self.sessions[session_id] = (1, wanted)
            return self._fetched(correlation_id, request, wanted, session_id, full=True)
        if session_id not in self.sessions:
            return self._error(correlation_id, SESSION_ID_NOT_FOUND)
        expected, wanted = self.sessions[session_id]
        if epoch != expected:
            return self._error(correlation_id, INVALID_EPOCH)
        self._update(wanted, request)
        self.sessions[session_id] = (expected + 1, wanted)
        if not wanted:
            self.emptied += 1
            del self.sessions[session_id]
            return fetched(correlation_id, {}, self.version), 0.0
        return self._fetched(correlation_id, request, wanted, session_id, full=False)

    def _error(self, correlation_id: int, error_code: int) -> tuple[bytes, float]:
        return fetched(correlation_id, {}, self.version, error_code=error_code), 0.0

    @staticmethod
    def _update(wanted: dict[Partition, _Wanted], request: Any) -> None:
        for topic, partitions in _topics(request.topics):
            for one in partitions:
                old = wanted.get((topic, one.partition))
                told = -1 if old is None else old.told
                wanted[topic, one.partition] = _Wanted(one.fetch_offset, one.partition_max_bytes, told)
        for topic, numbers in _topics(getattr(request, "forgotten_topics_data", ())):
            for number in numbers:
                wanted.pop((topic, number), None)

    def _fetched(
        self, correlation_id: int, request: Any, wanted: dict[Partition, _Wanted], session_id: int, full: bool
    ) -> tuple[bytes, float]:
        left = request.max_bytes
        told: dict[Partition, tuple[int, bytes]] = {}
        size = 0
        for partition, want in list(wanted.items()):
            records = self._read(partition, want, left, first=size == 0)
            size += len(records)
            if want.max_bytes == 0:
                self.probed[partition] = records
            left = max(left - len(records), 0)
            watermark = len(self.logs[partition])
            if full or records or watermark != want.told:
                told[partition] = (watermark, records)
                want.told = watermark
            if records and not full:
                wanted[partition] = wanted.pop(partition)
        waits = 0.0 if size else request.max_wait.total_seconds()
        return fetched(correlation_id, told, self.version, session_id=session_id), waits

    def _read(self, partition: Partition, want: _Wanted, left: int, first: bool) -> bytes:
        """Read up to the bound, which may cut a batch. The first batch of a response is always whole."""
        batches = self.logs[partition][want.offset :]
        if not batches:
            return b""
        most = min(want.max_bytes, left)
        if first:
            most = max(most, len(batches[0]))
        return b"".join(batches[:40])[:most]


@dataclass
class JavaClientModel:
    """Kafka's FetchSessionHandler, and as much of a fetcher as it needs."""

    version: int
    positions: dict[Partition, int]
    paused: set[Partition] = field(default_factory=set)
    got: dict[Partition, list[int]] = field(default_factory=dict)
    session_id: int = NO_SESSION
    epoch: int = FULL
    """FINAL for a client without sessions."""
    replica_id: int = -1
    correlation_id: int = 0
    _session: dict[Partition, int] = field(default_factory=dict)
    """The partitions that the broker's session has, with their offsets there."""

    def request(self) -> bytes:
        self.correlation_id += 1
        wanted = {
            partition: offset for partition, offset in self.positions.items() if partition not in self.paused
        }
        listed = wanted
        forgotten: tuple[Partition, ...] = ()
        if self.epoch not in (FULL, FINAL):
            listed = {
                partition: offset
                for partition, offset in wanted.items()
                if self._session.get(partition) != offset
            }
            forgotten = tuple(partition for partition in self._session if partition not in wanted)
        self._session = wanted
        return fetch(
            self.correlation_id,
            listed,
            self.version,
            session=(self.session_id, self.epoch),
            forgotten=forgotten,
            bounds=dict.fromkeys(listed, MAX_BYTES),
            replica_id=self.replica_id,
        )

    def lag(self, logs: dict[Partition, list[bytes]]) -> int:
        """The records that it lacked at its last fetch."""
        return sum(len(logs[partition]) - offset for partition, offset in self._session.items())

    @property
    def session_empty(self) -> bool:
        return not self._session

    def take_response(self, frame: bytes) -> int:
        """Take a response; return the number of its records."""
        assert int.from_bytes(frame[4:8], "big") == self.correlation_id
        response = read_frame(response_type(FETCH, self.version), frame)
        code = int(getattr(response, "error_code", 0))
        if code != 0:
            self.epoch = FULL
            self.session_id = NO_SESSION if code == SESSION_ID_NOT_FOUND else self.session_id
            return 0
        if self.epoch in (FULL, FINAL) and not response.responses and self._session:
            assert response.throttle_time.total_seconds() > 0.0
            return 0
        there = [
            ((topic, one.partition_index), one)
            for topic, partitions in _topics(response.responses)
            for one in partitions
        ]
        named = [partition for partition, _ in there]
        assert len(named) == len(set(named)), f"a partition twice in {named}"
        if self.epoch in (FULL, FINAL):
            assert set(named) == set(self._session), f"{named} instead of {list(self._session)}"
            self.session_id = getattr(response, "session_id", NO_SESSION)
            assert self.epoch == FULL or self.session_id == NO_SESSION
            self.epoch = 1 if self.session_id else self.epoch
        else:
            assert set(named) <= set(self._session), f"{named} is more than {list(self._session)}"
            self.epoch = self.epoch + 1 if response.session_id else FULL
            assert response.session_id in (NO_SESSION, self.session_id)
            self.session_id = response.session_id
        return sum(self._take(partition, one) for partition, one in there)

    def _take(self, partition: Partition, data: Any) -> int:
        assert data.high_watermark >= 0
        if self.positions[partition] != self._session[partition]:
            return 0  # The client has changed its position while the fetch was in flight.
        new = offsets(data.records or b"")
        got = self.got.setdefault(partition, [])
        for offset in new:
            assert offset == self.positions[partition], f"{partition}: {offset}"
            got.append(offset)
            self.positions[partition] += 1
        return len(new)
