"""Followers that catch up with their leaders under a replication quota. The clock is a number.

A leader responds as a broker does: a partition brings as many bytes as its bound, of which a follower keeps
whole batches. The first partition with records brings a batch in any case.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from proxy.quota.fetch.follower_plan import FollowerItem, FollowerPlan, SessionState
from proxy.quota.identity import Identity
from proxy.quota.kinds.replication.kind import Replication
from proxy.quota.limits.enforcement import PACE
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import Resources
from proxy.wire.api_keys import FETCH
from proxy.wire.cursor import NO_ID
from proxy.wire.fetch.request import NO_BOUND
from proxy.wire.fetch.rewrite import Watermarks
from proxy.wire.views import Item, RequestView, ResponseView
from tests.support.quotas.enforcement import enforcement

TOPIC: Final = "moved"
MESSAGE: Final = 100
"""Bytes."""
MEBIBYTE: Final = 1 << 20
RESPONSE_SECONDS: Final = 0.002
MAX_WAIT_SECONDS: Final = 0.5
START: Final = 1000.0


def throttled(
    leader_rate: float | None = None,
    follower_rate: float | None = None,
    *,
    algorithm: str = PACE,
    topics: Mapping[str, Mapping[str, str]] | None = None,
    brokers: Mapping[str, Mapping[str, str]] | None = None,
) -> Limits:
    """The rates of every broker. All replicas of TOPIC are throttled, unless `topics` says otherwise."""
    rates = {}
    if leader_rate is not None:
        rates["leader.replication.throttled.rate"] = str(int(leader_rate))
    if follower_rate is not None:
        rates["follower.replication.throttled.rate"] = str(int(follower_rate))
    lists = {"leader.replication.throttled.replicas": "*", "follower.replication.throttled.replicas": "*"}
    resources = Resources(
        {TOPIC: lists} if topics is None else topics, {"<default>": rates, **(brokers or {})}
    )
    return Limits({}, resources=resources, settings=enforcement(algorithm=algorithm))


def quotas(limits: Limits, node_ids: Sequence[int]) -> dict[int, Replication]:
    """The quotas of these brokers."""
    made: dict[int, Replication] = {}
    for node_id in node_ids:
        quota = Replication()
        quota.join(node_id, list(made.values()))
        made[node_id] = quota
    for quota in made.values():
        quota.configure(limits, START)
    return made


@dataclass
class Copy:
    """A partition of which a follower lacks messages. Offsets count messages of MESSAGE bytes."""

    item: FollowerItem
    size: int
    batch: int
    """Bytes."""
    offset: int = 0
    last_served: float = START
    longest_wait: float = 0.0
    broken: bool = False
    """Whether it brings nothing, although its high watermark is ahead."""

    @property
    def left(self) -> int:
        return self.size - self.offset * MESSAGE


class Party(Protocol):
    """What takes part in a move, in turn with others."""

    wakes_at: float

    def step(self, now: float, came: list[tuple[float, int]]) -> None:
        """Do what is due, and set `wakes_at` to the time of the next step."""


@dataclass
class Fetcher:
    """One follower's connection to one leader."""

    quota: Replication
    follower: int
    copies: list[Copy]
    who: Identity = field(default_factory=lambda: Identity("ANONYMOUS", "", "127.0.0.1"))
    wakes_at: float = START
    response_seconds: float = RESPONSE_SECONDS
    seconds_to_begin: float = 0.0
    """Seconds between the first bytes of a partition and the follower's next fetch."""
    began: list[float] = field(default_factory=list)
    """The time of the first bytes of each partition."""
    _due: FollowerPlan | None = None
    _state: SessionState | None = None
    _changed: list[FollowerItem] = field(init=False)
    """The items about which something has changed since the last plan."""
    _copy_of: dict[FollowerItem, Copy] = field(init=False)
    plans: int = 0

    def __post_init__(self) -> None:
        self._copy_of = {copy.item: copy for copy in self.copies}
        self._changed = list(self._copy_of)

    def step(self, now: float, came: list[tuple[float, int]]) -> None:
        """Do what is due, and set `wakes_at` to the time of the next step."""
        if self._due is not None:
            began = len(self.began)
            self._response(self._due, now, came)
            self._due = None
            busy = (len(self.began) - began) * self.seconds_to_begin
            if busy:
                self.wakes_at = now + busy
                return
        for item in self._changed:
            item.fetch_offset = self._copy_of[item].offset
        plan = FollowerPlan(self._changed, [], self._state)
        self.quota.plan_follower_fetch(plan, self.who, now)
        self._state = plan.state
        self._changed = []
        self.plans += 1
        if plan.omitted == len(self.copies):
            self.wakes_at = max(plan.ask_again_at, now + 0.001)
        elif any(not copy.item.omitted and copy.left for copy in self.copies):
            self._due = plan
            self.wakes_at = now + self.response_seconds
        else:
            wait = plan.ask_again_at - now if plan.omitted else MAX_WAIT_SECONDS
            self._due = plan
            self.wakes_at = now + min(max(wait, 0.001), MAX_WAIT_SECONDS)

    def _response(self, plan: FollowerPlan, now: float, came: list[tuple[float, int]]) -> None:
        request = RequestView(FETCH, 17, 1, "", 100)
        request.replica_id = self.follower
        response = ResponseView(17, True, 100, True)
        for copy in self.copies:
            if not copy.item.omitted:
                self._read(copy, response, now)
        total = sum(item.size for item in response.items)
        if total:
            came.append((now, total))
        self.quota.charge(request, response, self.who, now)

    def _read(self, copy: Copy, response: ResponseView, now: float) -> None:
        if copy.broken:
            return
        copy.item.marks.high_watermark = copy.size // MESSAGE
        self._changed.append(copy.item)
        bound = copy.item.max_bytes if copy.item.bound == NO_BOUND else copy.item.bound
        size = min(bound, copy.left)
        first = not response.items
        whole = size // copy.batch * copy.batch if size < copy.left else size
        if whole == 0:
            if not first or copy.left == 0:
                return
            whole = min(copy.batch, copy.left)
        # The relay cuts the partial batch off the end of a bounded response, and stores its size.
        copy.item.marks.batch_bytes = copy.batch if whole < size else 0
        if copy.offset == 0:
            self.began.append(now)
        copy.offset += whole // MESSAGE
        copy.longest_wait = max(copy.longest_wait, now - copy.last_served)
        copy.last_served = now
        response.add(Item(TOPIC, NO_ID, copy.item.partition, whole))


def copies(
    follower: int, count: int, size: int, batch: int = 16_000, first: int = 0, max_bytes: int = MEBIBYTE
) -> list[Copy]:
    """Partitions of `size` bytes of which the follower has nothing."""
    made = []
    for partition in range(first, first + count):
        item = FollowerItem(TOPIC, partition, follower, Watermarks())
        item.max_bytes = max_bytes
        made.append(Copy(item, size, batch))
    return made


def run(parties: Sequence[Party], seconds: float) -> list[tuple[float, int]]:
    """Return the bytes that arrive: times since the start, and sizes."""
    came: list[tuple[float, int]] = []
    now = max(START, min(party.wakes_at for party in parties))
    until = START + seconds
    while now < until:
        party = min(parties, key=lambda one: one.wakes_at)
        now = max(now, party.wakes_at)
        party.step(now, came)
    return [(at - START, size) for at, size in came]


def by_second(came: Sequence[tuple[float, int]], seconds: int) -> list[int]:
    """The bytes of each second."""
    sums = [0] * seconds
    for at, size in came:
        if at < seconds:
            sums[int(at)] += size
    return sums
