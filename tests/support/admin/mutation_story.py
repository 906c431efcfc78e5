"""A client, the controller mutation quota, and a broker that accepts what `rejects` does not name. The clock
is a number.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from kio.schema.errors import ErrorCode

from proxy.admin.broker import Broker, Reply
from proxy.admin.mutations.mutations import ControllerMutations
from proxy.errors import UpstreamUnavailable
from proxy.quota.identity import QuotaEntity
from proxy.quota.kinds.controller_mutation import CONTROLLER_MUTATION_RATE, ControllerMutation
from proxy.quota.limits.limits import Limits
from proxy.quota.usage import UsageLedger
from proxy.upstream.partition_counts import PartitionCounts, TopicDefaults
from proxy.upstream.partitions import Partitions, RecentMutations, TopicKey
from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.reader import Reader
from tests.support.admin.rights import FixedRights
from tests.support.messages.kio_messages import read_frame, request_frame, request_type, response_type
from tests.support.messages.mutations import (
    CREATE,
    DELETE,
    created,
    deleted,
    grown,
    intercepted,
    payload_of,
    results,
    to_end,
    topic_id,
)
from tests.support.quotas.enforcement import enforcement

CLUSTER: Final = "cluster"
NODE_ID: Final = 7
USER: Final = "u"


class Counts(PartitionCounts):
    """The numbers of partitions, by topic, of the broker's metadata."""

    def __init__(self) -> None:
        super().__init__(lambda node_id: None, 1.0)
        self.known: dict[str, int] = {}
        self.num_partitions = 1
        self.creates = True
        self.unreachable = False
        self.questions: list[list[TopicKey]] = []

    async def topics(self, node_id: int, keys: Sequence[TopicKey]) -> dict[TopicKey, Partitions]:
        assert node_id == NODE_ID
        self.questions.append(list(keys))
        if self.unreachable:
            raise UpstreamUnavailable("gone")
        found: dict[TopicKey, Partitions] = {}
        for name, count in self.known.items():
            partitions = Partitions(count, topic_id(name).bytes)
            found |= {key: partitions for key in (name, partitions.topic_id) if key in keys}
        return found

    async def default(self, node_id: int, now: float) -> TopicDefaults:
        assert node_id == NODE_ID
        return TopicDefaults(self.num_partitions, self.creates)


class Story:
    """`rejects`: the error codes of topics that the broker rejects."""

    def __init__(self, rate: float | None = 2.0, **settings: Any) -> None:
        self.now = 1000.0
        self.quota = ControllerMutation()
        quotas = {} if rate is None else {QuotaEntity(USER, None): {CONTROLLER_MUTATION_RATE: rate}}
        self.quota.configure(Limits(quotas, settings=enforcement(**settings)), self.now)
        self.usage = UsageLedger()
        self.counts = Counts()
        self.rejects: dict[str, int] = {}
        self.throttle_ms = 0
        self.asked: list[Any] = []
        """The requests that the broker received."""
        self.responses: list[bytes] = []
        """The broker's next responses (header and body), unless it makes them itself."""
        self.reply: Reply | None = None
        self.earlier_requests: Callable[[], object] = lambda: None
        """Called when the broker has responded to the earlier requests of the connection."""
        self.gone = False
        """Whether the client has closed its connection."""
        self._broker = Broker(
            CLUSTER,
            NODE_ID,
            self.counts,
            self._ask,
            FixedRights(),
            gone=lambda: self.gone,
            earlier_done=self._earlier_done,
        )
        self.slept = 0.0
        self._mutations = ControllerMutations(self.quota, self._time, self._sleep)

    async def _earlier_done(self) -> None:
        self.earlier_requests()

    def _time(self) -> float:
        return self.now

    async def _sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.now += seconds

    def send(self, message: Any, user: str = USER) -> Any:
        """Send a request; return its response, decoded by kio."""
        frame = self.send_frame(request_frame(message), user)
        return read_frame(response_type(message.__api_key__, message.__version__), frame)

    def send_frame(self, frame: bytes, user: str = USER) -> bytes:
        """Send a frame; return the response's frame."""
        self.reply = to_end(self._mutations.answer(intercepted(frame, user, self.usage), self._broker))
        return self.reply.frame

    def codes(self, message: Any, user: str = USER) -> list[tuple[str | None, int]]:
        """Send a request; return the name and error code of each topic in its response."""
        return results(self.send(message, user))

    async def _ask(self, frame: bytes) -> bytes:
        if self.responses:
            self.asked.append(frame)
            return self.responses.pop(0)
        header = read_request_header(Reader([frame], LENGTH_SIZE))
        request = read_frame(request_type(header.api_key, header.api_version), frame)
        self.asked.append(request)
        return payload_of(self._respond(request), header.correlation_id)

    def _respond(self, request: Any) -> Any:
        version = request.__version__
        names = self._names(request)
        codes = {name: self.rejects.get(name, 0) for name in names}
        if request.__api_key__ == CREATE:
            counts = {t.name: len(t.assignments) or t.num_partitions for t in request.topics}
            counts = {
                name: self.counts.num_partitions if count == -1 else count
                for name, count in counts.items()
                if codes[name] == 0
            }
            response = created(codes, version, partitions=counts)
        elif request.__api_key__ == DELETE:
            response = deleted(codes, version)
        else:
            response = grown(codes, version)
        if self.throttle_ms:
            response = replace(response, throttle_time=timedelta(milliseconds=self.throttle_ms))
        return response

    def _names(self, request: Any) -> Mapping[str, None]:
        """The topics of a request, each once, by name."""
        if hasattr(request, "topic_names"):
            return dict.fromkeys(request.topic_names)
        by_id = {topic_id(name): name for name in self.counts.known}
        return dict.fromkeys(topic.name or by_id[topic.topic_id] for topic in request.topics)

    @property
    def sent_on(self) -> list[list[str]]:
        """The topics of each request that the broker received, without those that it only validated."""
        return [list(self._names(request)) for request in self.asked if not _validates(request)]

    @property
    def validated(self) -> list[list[str]]:
        """The topics of each request that the broker only validated."""
        return [list(self._names(request)) for request in self.asked if _validates(request)]

    @property
    def recent(self) -> RecentMutations:
        return self._mutations.costs(CLUSTER).recent

    @property
    def tokens(self) -> float | None:
        """The tokens of the only bucket."""
        [bucket] = self.quota.live()
        return bucket.state(self.now).tokens

    @property
    def wait(self) -> tuple[float, float]:
        """The throttle time of the last response, and for how long the response is delayed."""
        assert self.reply is not None
        return self.reply.throttle.throttle_seconds, self.reply.delay_seconds


def _validates(request: Any) -> bool:
    return request.__api_key__ != DELETE and bool(request.validate_only)


def throttle_ms(response: Any) -> int:
    return int(response.throttle_time / timedelta(milliseconds=1))


NOT_THERE: Final = ErrorCode.unknown_topic_or_partition.value
EXISTS: Final = ErrorCode.topic_already_exists.value
FORBIDDEN: Final = ErrorCode.topic_authorization_failed.value
TIMED_OUT: Final = ErrorCode.request_timed_out.value
THROTTLED: Final = ErrorCode.throttling_quota_exceeded.value
