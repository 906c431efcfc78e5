"""StreamsTopics: applies the controller mutation quota to the internal topics of streams groups (KIP-1071).

If internal topics of a group are missing, each heartbeat of a member makes the broker create them. The broker
sends CreateTopics in the client's name to the controller, whose quota is strict, and responds with the status
MISSING_INTERNAL_TOPICS until the topics are there.

The relay intercepts only the heartbeats of clients with a controller mutation quota. When the broker has
responded to the earlier requests of the connection:

1. The proxy requests the partitions of the topology's topics. Without a topology in the heartbeat, it uses
   that of the group's last heartbeats, or first requests it (StreamsGroupDescribe).
2. If internal topics are missing that have not been charged, the proxy charges them one after the other, as
   the controller does: each when the tokens are not below zero. Each has as many partitions as the largest
   topic that it is made from. A charge replaces that of an earlier heartbeat of the group for the same topic.
   Heartbeats and other requests that wait for one quota are charged one after the other.
3. When all are charged, the proxy forwards the heartbeat. If its client closes the connection before, the
   charges are those of the group's next heartbeat.
4. If the response has this status, the proxy looks at the topics again, and charges what they cost more than
   before: partitions may have been added, or topics deleted, meanwhile. Otherwise topics that are still
   missing get their tokens back.

If no topics are missing, the heartbeat is forwarded at once.
"""

from collections.abc import Callable, Mapping
from typing import Final

from proxy.admin.broker import Broker, Reply
from proxy.admin.messages.fields import frame
from proxy.admin.messages.streams_groups import (
    HEARTBEAT,
    HeartbeatStatus,
    Subtopology,
    describe_request,
    read_described_topology,
    read_heartbeat,
    read_heartbeat_status,
)
from proxy.admin.mutations.permits import MOST_PARTITIONS, PermitCosts
from proxy.admin.mutations.turns import MutationTurns
from proxy.admin.yielder import Yielder
from proxy.quota.identity import Identity, client_key
from proxy.quota.kinds.controller_mutation import ControllerMutation
from proxy.quota.measure.bucket import Bucket
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, RelayError
from proxy.relay.intercepted import Intercepted
from proxy.upstream.partitions import Partitions, TopicKey
from proxy.wire.api_keys import STREAMS_GROUP_HEARTBEAT
from proxy.wire.errors import ProtocolError

GROUPS_AT_MOST: Final = 10_000
"""Groups that are known to lack no topic, and groups whose topics are being created."""
TOPICS_AT_MOST: Final = 100_000
"""The topics of the former."""
MAX_GROUP_ID: Final = 255
"""A group with a longer id is described each time."""

Group = tuple[str, str]
"""The ids of a cluster and of a group in it."""


class StreamsTopics:
    """Answers the heartbeats of streams groups of clients with a quota, to one cluster or several."""

    def __init__(
        self,
        quota: ControllerMutation,
        costs: Callable[[str], PermitCosts],
        turns: MutationTurns,
        time: Callable[[], float],
    ) -> None:
        """`costs` returns those of a cluster, by its id. `turns` are those of all requests of the quota."""
        self._quota: Final = quota
        self._costs: Final = costs
        self._time: Final = time
        self._turns: Final = turns
        self._complete: Final[dict[Group, list[Subtopology]]] = {}
        """The topologies of groups that lacked no topic when a member last sent a heartbeat."""
        self._topics = 0
        """Their topics."""
        self._pending: Final[dict[Group, _Pending]] = {}

    async def answer(self, intercepted: Intercepted, broker: Broker) -> Reply:
        """Return the broker's response. Raises ProtocolError if the request does not parse, RelayError if the
        broker's response does not.
        """
        HEARTBEAT.check_version(intercepted.header.api_version)
        who = intercepted.exchange.client
        if self._bucket(who) is None:
            return Reply(frame([await broker.ask(frame([intercepted.frame]))]))
        yielder = Yielder(client_key(who))
        heartbeat = await read_heartbeat(intercepted.header, intercepted.frame, yielder)
        creation = _Creation(self._costs(broker.cluster_id), intercepted, broker, heartbeat.group_id, yielder)
        group = (broker.cluster_id, heartbeat.group_id)
        await broker.earlier_done()
        if heartbeat.topology is not None:
            creation.topology = heartbeat.topology
        elif group in self._complete:
            creation.topology = self._complete[group]
            creation.remembered = True
        else:
            await creation.describe()
        status = await self._forward(group, creation, who)
        self._note(group, creation.topology, status)
        return Reply(frame([creation.response]))

    async def _forward(self, group: Group, creation: "_Creation", who: Identity) -> HeartbeatStatus:
        """Forward a heartbeat. If it may create topics that have not been charged, it waits for the quota."""
        await creation.look()
        bucket = self._bucket(who)
        if bucket is None or not self._uncharged(group, creation.missing):
            return await self._forward_now(group, creation, who)
        async with self._turns.turn(bucket, who, creation.gone):
            await creation.look()
            earlier = self._pending.get(group)
            charged = await self._charge_each(group, creation, who)
            return await self._forward_now(group, creation, who, earlier, charged)

    def _uncharged(self, group: Group, missing: dict[str, int]) -> list[str]:
        """The missing topics that have not been charged, or for fewer partitions."""
        pending = self._pending.get(group)
        charged = {} if pending is None else pending.topics
        return [name for name, permits in missing.items() if permits > charged.get(name, 0)]

    async def _charge_each(self, group: Group, creation: "_Creation", who: Identity) -> int:
        """Charge missing topics one after the other, each at the moment when the tokens are not below zero;
        return how many tokens are taken. If the limit of another entity applies meanwhile, the rest is left
        to _charge().
        """
        missing = creation.missing
        uncharged = self._uncharged(group, missing)
        earlier = self._pending.get(group)
        pending: _Pending | None = None
        charged = 0
        for name in uncharged:
            await creation.yielder.step()
            await self._turns.wait(who, creation.gone)
            bucket = self._bucket(who)
            if bucket is None or (earlier is not None and earlier.bucket is not bucket):
                break
            if pending is None:
                topics, permits, begun = ({}, 0, False) if earlier is None else earlier.state
                pending = _Pending(bucket, dict(topics), permits, begun)
            elif pending.bucket is not bucket:
                break
            more = pending.add(name, missing[name])
            if more > 0:
                self._quota.charge_permissive(bucket, more, self._time(), who, STREAMS_GROUP_HEARTBEAT)
            self._keep(group, pending)
            charged += more
        return charged

    def _keep(self, group: Group, pending: "_Pending") -> None:
        self._pending[group] = pending
        if len(self._pending) > GROUPS_AT_MOST:
            del self._pending[next(iter(self._pending))]

    async def _forward_now(
        self,
        group: Group,
        creation: "_Creation",
        who: Identity,
        earlier: "_Pending | None" = None,
        charged: int = 0,
    ) -> HeartbeatStatus:
        """Forward a heartbeat. It is charged before, because its client may close the connection.

        `charged`: the tokens that have been taken for it; `earlier`: what had been charged before them.
        """
        if charged == 0:
            earlier = self._pending.get(group)
        charged += self._charge(group, creation.missing, who)
        status = await creation.forward()
        if status.creates:
            await creation.look_again()
            self._charge(group, creation.missing, who)  # another heartbeat may have given the tokens back
            pending = self._pending.get(group)
            if pending is not None:
                pending.begun = True
        elif charged > 0:
            await creation.look()  # an earlier heartbeat may have created them meanwhile
            self._give_back(group, charged, creation.missing, earlier)
        return status

    def _bucket(self, who: Identity) -> Bucket | None:
        return self._quota.bucket(who, self._time())

    def _charge(self, group: Group, missing: dict[str, int], who: Identity) -> int:
        """Charge the topics that a heartbeat creates, less what has been charged for those of them that an
        earlier one should have created; return how many tokens are taken.
        """
        now = self._time()
        bucket = self._bucket(who)
        earlier = self._pending.pop(group, None)
        if earlier is not None and earlier.bucket is not bucket:
            self._quota.give_back(earlier.bucket, earlier.of(missing), now)
            earlier = None
        if bucket is None or not missing:
            return 0
        permits = min(sum(missing.values()), MOST_PARTITIONS)
        more = permits - (0 if earlier is None else earlier.of(missing))
        if more > 0:
            self._quota.charge_permissive(bucket, more, now, who, STREAMS_GROUP_HEARTBEAT)
        elif more < 0:
            self._quota.give_back(bucket, -more, now)
        self._keep(group, _Pending(bucket, missing, permits, earlier is not None and earlier.begun))
        return more

    def _give_back(
        self, group: Group, charged: int, missing: dict[str, int], earlier: "_Pending | None"
    ) -> None:
        """Give back what a heartbeat has been charged for topics that are still missing, unless another one
        makes the broker create them. `earlier`: what had been charged before.
        """
        pending = self._pending.pop(group, None)
        if pending is not None and pending.begun:
            self._pending[group] = pending
        elif pending is not None:
            self._quota.give_back(pending.bucket, min(charged, pending.of(missing)), self._time())
            if earlier is not None:
                self._pending[group] = earlier

    def _note(self, group: Group, topology: list[Subtopology], status: HeartbeatStatus) -> None:
        """Note whether the group lacks topics."""
        if not status.complete:
            self._forget(group)
            return
        self._pending.pop(group, None)
        if self._complete.get(group) is topology or len(group[1]) > MAX_GROUP_ID:
            return
        self._forget(group)
        self._complete[group] = topology
        self._topics += _size(topology)
        while len(self._complete) > GROUPS_AT_MOST or self._topics > TOPICS_AT_MOST:
            self._forget(next(iter(self._complete)))

    def _forget(self, group: Group) -> None:
        topology = self._complete.pop(group, None)
        if topology is not None:
            self._topics -= _size(topology)


class _Pending:
    """What has been charged for topics that may not exist yet."""

    def __init__(self, bucket: Bucket, topics: dict[str, int], permits: int, begun: bool) -> None:
        self.begun = begun
        """Whether the broker has begun to create topics of the group since it lacks some."""
        self.bucket: Final = bucket
        self.topics: Final = topics
        """The permits of each topic."""
        self._permits = permits

    @property
    def state(self) -> tuple[dict[str, int], int, bool]:
        """`topics`, what has been charged for all of them, and `begun`."""
        return self.topics, self._permits, self.begun

    def add(self, name: str, permits: int) -> int:
        """Add a topic, or partitions of one; return how many tokens that costs."""
        more = min(permits - self.topics.get(name, 0), MOST_PARTITIONS - self._permits)
        self.topics[name] = permits
        self._permits += more
        return more

    def of(self, topics: dict[str, int]) -> int:
        """What has been charged for these topics."""
        return min(sum(permits for name, permits in self.topics.items() if name in topics), self._permits)


class _Creation:
    """The topics that one heartbeat may create."""

    def __init__(
        self, costs: PermitCosts, intercepted: Intercepted, broker: Broker, group_id: str, yielder: Yielder
    ) -> None:
        self.response = b""
        """The response to the heartbeat, header and body, after forward()."""
        self.missing: dict[str, int] = {}
        """After look(): the internal topics that do not exist, with the permits that each costs."""
        self.topology: list[Subtopology] = []
        self.remembered = False
        """Whether the topology is that of an earlier heartbeat: another proxy may have seen a newer one."""
        self._before: dict[TopicKey, Partitions | None] = {}
        """After look(): the topics that it has requested, None for those that do not exist."""
        self._internal: dict[TopicKey, None] = {}
        """Those that the broker creates."""
        self.yielder: Final = yielder
        self.gone: Final = broker.gone
        self._costs: Final = costs
        self._intercepted: Final = intercepted
        self._broker: Final = broker
        self._group_id: Final = group_id

    async def describe(self) -> None:
        """Request the group's topology."""
        payload = await self._broker.ask(describe_request(self._intercepted.header, self._group_id))
        try:
            self.topology = await read_described_topology(payload, self.yielder)
        except ProtocolError as error:
            raise _unreadable("StreamsGroupDescribe", error) from error

    async def look(self) -> None:
        """Request which topics exist. If the broker cannot be asked, none is missing."""
        names = await self._names()
        found = await self._costs.found(self._broker.counts, self._broker.node_id, names) if names else {}
        self.missing = {} if found is None else await _missing(self.topology, found, self.yielder)
        self._before = {} if found is None else {name: found.get(name) for name in names}

    async def look_again(self) -> None:
        """Request what the heartbeat creates, because topics may have changed since look(). Those that have
        been created meanwhile cost the partitions that they have; none costs less than before.
        """
        before = self._before
        missing = self.missing
        if self.remembered:
            await self.describe()
        await self.look()
        for name, now in self._before.items():
            await self.yielder.step()
            if now is None or not isinstance(name, str) or name not in before:
                continue
            then = before[name]
            if (then is None or then.topic_id != now.topic_id) and name in self._internal:
                self.missing[name] = min(now.count, MOST_PARTITIONS)
        for each, permits in missing.items():
            await self.yielder.step()
            self.missing[each] = max(self.missing.get(each, 0), permits)

    async def _names(self) -> list[TopicKey]:
        """All topics of the topology."""
        sources: dict[TopicKey, None] = {}
        internal: dict[TopicKey, None] = {}
        for one in self.topology:
            sources.update(dict.fromkeys(one.sources))
            internal.update(dict.fromkeys([*one.changelogs, *one.repartitions]))
            await self.yielder.step()
        self._internal = internal
        return [*(sources | internal)]

    async def forward(self) -> HeartbeatStatus:
        """Forward the heartbeat, and keep the response."""
        self.response = await self._broker.ask(frame([self._intercepted.frame]))
        try:
            return read_heartbeat_status(self.response)
        except ProtocolError as error:
            raise _unreadable("StreamsGroupHeartbeat", error) from error


async def _missing(
    topology: list[Subtopology], found: Mapping[TopicKey, Partitions], yielder: Yielder
) -> dict[str, int]:
    """Return the internal topics that are not among the found ones, with their partitions, at least 1. Where
    these depend on other subtopologies, they are the most that any topic has.
    """
    counts = {name: partitions.count for name, partitions in found.items()}
    most = 1
    for one in topology:
        known = [counts.get(name, 0) for name in one.sources]
        most = max(most, *known, *one.repartitions.values())
        await yielder.step()
    missing: dict[str, int] = {}
    for one in topology:
        sources = {name: counts.get(name, 0) for name in one.sources}
        sources |= {name: counts.get(name) or own or most for name, own in one.repartitions.items()}
        topics = {**dict.fromkeys(one.changelogs, max(sources.values(), default=1)), **sources}
        for name in (*one.changelogs, *one.repartitions):
            if name not in counts:
                missing[name] = min(max(topics[name], 1), MOST_PARTITIONS)
        await yielder.step()
    return missing


def _size(topology: list[Subtopology]) -> int:
    """How many topics a topology has."""
    return sum(len(one.sources) + len(one.changelogs) + len(one.repartitions) for one in topology) + 1


def _unreadable(what: str, error: ProtocolError) -> RelayError:
    return RelayError(BROKER_PROTOCOL_ERROR, f"the response to {what} does not parse: {error}")
