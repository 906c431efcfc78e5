"""Configs of deleted topics are removed if every broker agrees for a while, and in no other case."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pytest

from proxy.admin.configs.deleted_topics import SURE_SECONDS, TOPICS_AT_A_TIME, DeletedTopics
from proxy.errors import UpstreamUnavailable
from proxy.quota.identity import Identity
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.store.quota_store import ConfigChange, StoreUnavailable
from tests.support.quotas.memory_store import memory_store

RATE, ACTION = "producer.byte.rate", "producer.byte.rate.action"
T = ConfigResource(TOPIC, "t")
OLD, NEW = b"\1" * 16, b"\2" * 16
WHO = Identity("admin", "tool", "10.0.0.1")
File = dict[ConfigResource, dict[str, str]]


class Cluster:
    """Its brokers, each with the topics that it knows; None in place of an id: it may not say."""

    def __init__(self, *brokers: dict[str, bytes | None]) -> None:
        self.brokers = list(brokers)
        self.asked: list[tuple[int, list[str]]] = []
        self.away: set[int] = set()

    def nodes(self) -> Sequence[int]:
        return range(len(self.brokers))

    async def topic_ids(self, node_id: int, names: Sequence[str]) -> Mapping[str, bytes | None]:
        self.asked.append((node_id, list(names)))
        if node_id in self.away:
            raise UpstreamUnavailable("away")
        topics = self.brokers[node_id]
        silent = {name for name, topic_id in topics.items() if topic_id is None}
        return {name: topics.get(name) for name in names if name not in silent}


class Kit:
    """A store with configs of topic t, set for the topic with id OLD."""

    def __init__(self, *clusters: Cluster, file: File | None = None) -> None:
        self.now = 0.0
        self.store, self.log = memory_store({}, configs=file)
        self.watch = DeletedTopics(self.store, clusters, lambda: self.now)

    async def set(
        self,
        topic_id: bytes | None = OLD,
        resource: ConfigResource = T,
        values: Mapping[str, str | None] = MappingProxyType({}),
    ) -> None:
        shown = None if topic_id is None else topic_id.hex()
        change = ConfigChange(resource, {RATE: "5", **values}, topic_id=shown)
        await self.store.alter_configs([change], WHO)

    async def look_for(self, seconds: float = SURE_SECONDS) -> None:
        await self.watch.look()
        self.now += seconds
        await self.watch.look()

    @property
    def configs(self) -> dict[str, dict[str, str]]:
        return {resource.name: values for resource, values in self.store.configs.items()}


@pytest.mark.parametrize("known", [True, False], ids=["with its id", "without"])
async def test_configs_of_a_deleted_topic_are_removed(known: bool) -> None:
    file = {T: {RATE: "9"}}
    kit = Kit(Cluster({}, {}), Cluster({}), file=file)
    await kit.set(OLD if known else None, values={ACTION: None})
    await kit.store.alter_configs([ConfigChange(T, {RATE: "50"}, 9_000_000)], WHO)
    await kit.look_for(SURE_SECONDS - 0.1)
    assert kit.configs == {"t": {RATE: "50"}}
    kit.now += 0.1
    await kit.watch.look()
    assert kit.configs == file_configs(file), "only what was set with tools is forgotten"
    assert kit.log.records[-1][1].by == "quota-proxy"
    assert kit.store.topics_set() == set()
    kit.store.close()


def file_configs(file: File) -> dict[str, dict[str, str]]:
    return {resource.name: values for resource, values in file.items()}


async def test_existing_topic_keeps_its_configs() -> None:
    for topic_id in (OLD, None):
        kit = Kit(Cluster({"t": OLD}))
        await kit.set(topic_id)
        await kit.look_for()
        assert kit.configs == {"t": {RATE: "5"}}


async def test_configs_may_outlive_their_topic() -> None:
    kit = Kit(Cluster({}))
    await kit.set()
    kit.store.retains_deleted = True
    await kit.look_for()
    assert kit.configs == {"t": {RATE: "5"}}
    kit.store.retains_deleted = False
    await kit.look_for()
    assert kit.configs == {}
    kit.store.close()


async def test_new_topic_of_the_same_name_starts_without_configs() -> None:
    kit = Kit(Cluster({"t": NEW}))
    await kit.set(OLD, values={ACTION: "reject"})
    await kit.store.alter_configs([ConfigChange(T, {ACTION: "throttle"}, topic_id=NEW.hex())], WHO)
    await kit.look_for()
    assert kit.configs == {"t": {ACTION: "throttle"}}


@pytest.mark.parametrize(
    "cluster",
    [
        Cluster({}, {"t": OLD}),
        Cluster({"t": NEW}, {"t": OLD}),
        Cluster({}, {"t": None}),
        Cluster({"t": None}),
        Cluster(),
    ],
    ids=["one has it", "one has the other", "one may not say", "none may say", "no broker is known"],
)
async def test_configs_are_kept_unless_every_broker_agrees(cluster: Cluster) -> None:
    kit = Kit(cluster)
    await kit.set()
    for _ in range(6):
        await kit.look_for()
    assert kit.configs == {"t": {RATE: "5"}}


async def test_configs_are_kept_if_a_broker_is_unavailable() -> None:
    away = Cluster({}, {})
    away.away = {1}
    for clusters in ((away,), (Cluster({}), away), (Cluster({}), Cluster({"t": OLD}))):
        kit = Kit(*clusters)
        await kit.set()
        for _ in range(6):
            await kit.look_for()
        assert kit.configs == {"t": {RATE: "5"}}


async def test_configs_are_kept_without_a_cluster() -> None:
    kit = Kit()
    await kit.set()
    for _ in range(6):
        await kit.look_for()
    assert kit.configs == {"t": {RATE: "5"}}


async def test_reappearing_topic_is_no_longer_suspected() -> None:
    cluster = Cluster({})
    kit = Kit(cluster)
    await kit.set()
    await kit.watch.look()
    cluster.brokers = [{"t": OLD}]
    await kit.look_for(1.0)
    cluster.brokers = [{}]
    await kit.look_for(SURE_SECONDS - 1.0)
    assert kit.configs == {"t": {RATE: "5"}}


async def test_configs_that_are_set_while_the_brokers_are_asked_are_kept() -> None:
    """Removing the configs of many topics takes seconds, in which one of them may be created again."""

    class Recreated(Cluster):
        async def topic_ids(self, node_id: int, names: Sequence[str]) -> Mapping[str, bytes | None]:
            known = await super().topic_ids(node_id, names)
            if len(self.asked) == 3:
                await kit.set(NEW)
            return known

    kit = Kit(Recreated({}))
    await kit.set(OLD, values={ACTION: "reject"})
    await kit.look_for()
    assert kit.configs == {"t": {RATE: "5"}}


async def test_topic_that_lost_its_configs_is_no_longer_suspected() -> None:
    """Another proxy has removed them. The suspicion must not pass to a new topic of the name."""
    kit = Kit(Cluster({}))
    await kit.set(OLD)
    await kit.watch.look()
    await kit.store.forget_topic_configs("t", {RATE: OLD.hex()}, WHO)
    await kit.look_for(SURE_SECONDS)
    await kit.set(NEW)
    await kit.watch.look()
    assert kit.configs == {"t": {RATE: "5"}}


async def test_only_topics_with_configs_set_by_tools_are_looked_up() -> None:
    cluster = Cluster({})
    kit = Kit(cluster, file={ConfigResource(TOPIC, "f"): {RATE: "5"}})
    await kit.set(None, ConfigResource(TOPIC, DEFAULT_RESOURCE))
    await kit.store.alter_configs(
        [ConfigChange(ConfigResource(BROKER, "1"), {"leader.replication.throttled": "true"})], WHO
    )
    await kit.look_for()
    assert cluster.asked == []


async def test_many_topics_take_turns() -> None:
    cluster = Cluster({f"t{number}": OLD for number in range(1200)})
    del cluster.brokers[0]["t7"]
    kit = Kit(cluster)
    changes = [
        ConfigChange(ConfigResource(TOPIC, f"t{number}"), {RATE: "5"}, topic_id=OLD.hex())
        for number in range(1200)
    ]
    await kit.store.alter_configs(changes, WHO)
    for _ in range(8):
        await kit.watch.look()
        kit.now += SURE_SECONDS
    assert all(len(names) <= TOPICS_AT_A_TIME for _, names in cluster.asked)
    assert len({name for _, names in cluster.asked for name in names}) == 1200
    assert "t7" not in kit.configs
    assert len(kit.configs) == 1199


async def test_unavailable_store_is_logged_once_for_each_reason(caplog: pytest.LogCaptureFixture) -> None:
    kit = Kit(Cluster({}))
    for _ in range(2):
        caplog.clear()
        await kit.set()
        for reason in ("away", "still away"):
            kit.log.failure = StoreUnavailable(reason)
            await kit.look_for()
            await kit.watch.look()
        assert kit.configs == {"t": {RATE: "5"}}
        kit.log.failure = None
        await kit.watch.look()
        assert kit.configs == {}
        warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
        assert ["still" in warning for warning in warnings] == [False, True]
