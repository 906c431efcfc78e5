"""Whatever quotas omit, a client's fetch sessions stay right, and it gets each record once and in order."""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from proxy.relay.fetch.sessions import LEAST_WAIT_SECONDS, SESSION_MASK
from tests.support.simulations.fetch_models import (
    FINAL,
    FULL,
    NO_SESSION,
    BrokerModel,
    JavaClientModel,
    batch,
    offsets,
)
from tests.support.stories.fetching import COLD, HOT, Partition, Story
from tests.support.stories.playbook import START

HOTS = [(HOT, number) for number in range(3)]
COLDS = [(COLD, number) for number in range(2)]
VERSIONS = [7, 11, 12, 13, 18]
partitions = st.sampled_from(HOTS + COLDS)
numbers = st.integers(0, len(HOTS) - 1)

# What happens between two fetches.
happenings = st.one_of(
    st.tuples(st.just("hold"), numbers, st.sampled_from([0.001, 0.05, 0.2, 0.6, 2.0])),
    st.tuples(st.just("release"), numbers),
    st.tuples(st.just("bound"), numbers, st.sampled_from([1, 100, 1000])),
    st.tuples(st.just("unbound"), numbers),
    st.tuples(st.just("append"), partitions, st.integers(1, 4), st.sampled_from([12, 150, 900])),
    st.tuples(st.just("pause"), partitions),
    st.tuples(st.just("resume"), partitions),
    st.tuples(st.just("seek"), partitions),
    st.tuples(st.just("evict")),
    st.tuples(st.just("full"), st.booleans()),
    st.tuples(st.just("limits"), st.booleans()),
    st.tuples(st.just("restart")),
    st.tuples(st.just("reconnect")),
)

Step = tuple[Any, ...]
"""The name of a method of World, and its arguments."""
some_steps = st.lists(st.lists(happenings, max_size=4), min_size=3, max_size=25)
MANY = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


class World:
    """A client, the relay and a broker, one fetch after the other."""

    def __init__(self, version: int, with_cold: bool, epoch: int = FULL, replica_id: int = -1) -> None:
        every = HOTS + (COLDS if with_cold else [])
        self.story = Story(between_brokers=replica_id >= 0)
        self.broker = BrokerModel(version, {partition: [] for partition in HOTS + COLDS})
        self.client = JavaClientModel(version, dict.fromkeys(every, 0), epoch=epoch, replica_id=replica_id)
        self.now = START
        self.probed: set[Partition] = set()
        """The partitions that have been probed in this session of the client."""
        self.unknown: set[int] = set()
        """Sessions that the broker still has, and neither the client nor the relay can name: the client has
        lost the connection on which the relay had responded, without a session, to a full request.
        """

    def happen(self, what: str, *details: Any) -> None:
        getattr(self, what)(*details)

    def hold(self, number: int, seconds: float) -> None:
        self.story.quota.omit(self.now - START + seconds, number)

    def release(self, number: int) -> None:
        self.story.quota.until.pop(number, None)

    def bound(self, number: int, most: int) -> None:
        self.story.quota.bounds[number] = most

    def unbound(self, number: int) -> None:
        self.story.quota.bounds.pop(number, None)

    def append(self, partition: Partition, count: int, size: int) -> None:
        log = self.broker.logs[partition]
        log += [batch(offset, size) for offset in range(len(log), len(log) + count)]

    def pause(self, partition: Partition) -> None:
        self.client.paused.add(partition)

    def resume(self, partition: Partition) -> None:
        self.client.paused.discard(partition)

    def seek(self, partition: Partition) -> None:
        if partition in self.client.positions:
            self.client.positions[partition] = 0
            self.client.got.pop(partition, None)

    def evict(self) -> None:
        self.broker.sessions.clear()

    def full(self, has_room: bool) -> None:
        self.broker.has_room = has_room

    def limits(self, holds: bool) -> None:
        self.story.quota.omits = holds
        self.story.new_limits()

    def restart(self) -> None:
        self.client.epoch = min(self.client.epoch, 0)

    def reconnect(self) -> None:
        if self.client.session_id == NO_SESSION:
            self.unknown |= self.broker.sessions.keys()
        self.story.connect()
        self.restart()

    def check_omitted(self) -> None:
        """An omitted partition is not in the broker's session, once the relay knows that session.

        A follower's may be there without bytes, so that the broker reports its high watermark.
        """
        if self.client.epoch == FULL:
            # A consumer that has lost its connection cannot have the session of before closed.
            return
        quota = self.story.quota
        epoch, wanted = self.broker.sessions.get(self.client.session_id ^ SESSION_MASK, (1, {}))
        omitted = {(HOT, number) for number, until in quota.until.items() if START + until > self.now}
        follower = self.client.replica_id >= 0
        fetched = {partition for partition, want in wanted.items() if want.max_bytes > 0 or not follower}
        assert epoch == 1 or not quota.omits or not omitted & fetched

    def check_probes(self) -> None:
        """Probes bring at most one batch in a response, and each partition is probed once in a session."""
        probed = self.broker.probed
        assert not probed or self.client.replica_id >= 0
        assert sum(len(offsets(records)) for records in probed.values()) <= 1
        if self.client.epoch == FULL:
            self.probed.clear()
        else:
            assert not probed.keys() & self.probed
        self.probed |= probed.keys()

    def check_follower(self, asked: int) -> None:
        """It is known how much it lacks, and it leaves no session behind."""
        if self.client.replica_id >= 0:
            node_id, lag = self.story.relay.status.follower
            assert node_id == self.client.replica_id
            lacks = self.client.lag(self.broker.logs)
            all_told = asked and not self.story.quota.until and self.client.epoch != FULL
            assert lag == lacks if all_told else lag <= lacks
            assert len(self.broker.sessions.keys() - self.unknown) <= 1

    def fetch(self) -> int:
        """One fetch, to its response; returns how many records came."""
        relay = self.story.relay
        began = self.now
        relay.receive_from_client(self.client.request(), self.now)
        emptied = self.broker.emptied
        asked = 0
        while not (response := b"".join(relay.take_to_client())):
            request = b"".join(relay.take_to_broker())
            if request:
                asked += 1
                response, seconds = self.broker.respond(request)
                self.check_omitted()
                self.check_probes()
                self.now += seconds
                relay.receive_from_broker(response, self.now)
            else:
                due = relay.next_timer
                assert due >= self.now, "nothing happens any more"
                self.now = due
                relay.handle_timer(due)
        assert asked <= 1
        assert relay.status.idle
        if self.broker.emptied > emptied:
            assert self.client.session_empty, "the broker's session has become empty"
        rejected = self.client.epoch
        records = self.client.take_response(response)
        self.check_follower(asked)
        assert self.now - began <= 0.5 + 1e-6, "the response came later than the client waits"
        quiet = records == 0 and asked == 0 and self.client.epoch in (rejected + 1, FINAL)
        assert not quiet or self.now - began >= LEAST_WAIT_SECONDS, "an empty response at once"
        return records


@pytest.mark.parametrize("version", VERSIONS)
@MANY
@given(with_cold=st.booleans(), steps=some_steps)
def test_each_record_comes_once_and_in_order(version: int, with_cold: bool, steps: list[list[Step]]) -> None:
    run(World(version, with_cold), steps)


@pytest.mark.parametrize("version", [4, 5, 6, 7, 11, 13])
@MANY
@given(with_cold=st.booleans(), steps=some_steps)
def test_outside_sessions_too(version: int, with_cold: bool, steps: list[list[Step]]) -> None:
    run(World(version, with_cold, FINAL), steps)


@pytest.mark.parametrize("version", [12, 17, 18])
@MANY
@given(with_cold=st.booleans(), steps=some_steps)
@example(
    with_cold=False,
    steps=[[("hold", 1, 0.6)], [("restart",), ("pause", (HOT, 0)), ("pause", (HOT, 2))], [("reconnect",)]],
)
def test_followers_too(version: int, with_cold: bool, steps: list[list[Step]]) -> None:
    run(World(version, with_cold, replica_id=2), steps)


def run(world: World, steps: list[list[Step]]) -> None:
    """The steps, and then fetches until everything has come."""
    for step in steps:
        for what, *details in step:
            world.happen(what, *details)
        world.fetch()
    world.client.paused.clear()
    world.story.quota.until.clear()
    for _ in range(400):
        if all(len(world.broker.logs[one]) == at for one, at in world.client.positions.items()):
            break
        world.fetch()
    for partition in world.client.positions:
        assert world.client.got.get(partition, []) == list(range(len(world.broker.logs[partition])))
