"""CreateTopics with quota configs: the broker creates the topics, and the proxy stores their quotas."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.configs.create_topics import TopicCreations
from proxy.admin.configs.store import ConfigsStore
from proxy.admin.messages.create_topics import CreateTopics
from proxy.admin.messages.fields import MAX_REQUEST_BYTES
from proxy.admin.mutations.mutations import ControllerMutations
from proxy.admin.yielder import STEPS
from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.kinds.controller_mutation import CONTROLLER_MUTATION_RATE, ControllerMutation
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import DEFAULT_RESOURCE, LIST, TOPIC, ConfigKey, ConfigResource
from proxy.quota.verdict import ALLOW
from proxy.relay.close_reasons import RelayError
from proxy.store.quota_store import ConfigChange, StoreUnavailable
from proxy.wire.errors import Malformed, UnsupportedVersion
from tests.support.admin.configs_broker import Counts, FakeBroker
from tests.support.admin.rights import FixedRights
from tests.support.loop_turns import counted_turns
from tests.support.messages.kio_messages import (
    LENGTH,
    read_frame,
    request_frame,
    request_type,
    response_type,
    versions,
)
from tests.support.messages.mutations import (
    CREATE,
    FIRST_CREATE_OF_KIO,
    NO_TIME,
    SECONDS_30,
    intercepted,
    old_response,
    topic_id,
)
from tests.support.messages.requests import build, part
from tests.support.quotas.config_rules import CONFIG_RULES, too_much
from tests.support.quotas.memory_store import memory_store
from tests.support.turn_lengths import turn_lengths

RATE, ACTION, REPLICAS = (
    "producer.byte.rate",
    "producer.byte.rate.action",
    "leader.replication.throttled.replicas",
)
PART, THEIRS = "bytes.in.per.sec.threshold", "retention.ms"
T = ConfigResource(TOPIC, "t")
LIMITS = [config for kind in load_kinds() for config in kind.configs if config.resource == TOPIC]
EXISTS = ErrorCode.topic_already_exists
every_version = pytest.mark.parametrize("version", versions(CREATE))
Topics = Mapping[str, Mapping[str, str | None] | Sequence[tuple[str, str | None]]]


def create(topics: Topics, version: int = 7, *, validate_only: bool = False) -> Any:
    """A CreateTopics request: by name the topics' configs."""
    schema = request_type(CREATE, version)
    creatable = tuple(
        part(
            schema,
            "CreatableTopic",
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=(part(schema, "CreatableReplicaAssignment", partition_index=0, broker_ids=(1, 2)),),
            configs=tuple(
                part(schema, "CreatableTopicConfig", name=config, value=value)
                for config, value in (configs.items() if isinstance(configs, Mapping) else configs)
            ),
        )
        for name, configs in topics.items()
    )
    return build(schema, topics=creatable, timeout=SECONDS_30, validate_only=validate_only)


class Kit:
    """The proxy's part before a broker, with a store in memory."""

    def __init__(
        self,
        file: dict[ConfigResource, dict[str, str]] | None = None,
        rejects: Mapping[str, ErrorCode] | None = None,
        mutation_rate: float | None = None,
        rules: ConfigRules = CONFIG_RULES,
    ) -> None:
        self.store, self.log = memory_store({}, configs=file)
        self.broker = FakeBroker()
        self.broker.respond = self._created
        self.hidden = False
        self._rejects = rejects or {}
        quota = ControllerMutation()
        if mutation_rate is not None:
            everybody = {QuotaEntity(DEFAULT, None): {CONTROLLER_MUTATION_RATE: mutation_rate}}
            quota.configure(Limits(everybody), 0.0)
        mutations = ControllerMutations(quota, lambda: 0.0)
        self.creations = TopicCreations(ConfigsStore(self.store), rules, mutations)

    def _created(self, request: Any) -> Any:
        schema = response_type(CREATE, int(request.__version__))
        topics = []
        for topic in request.topics:
            code = self._rejects.get(topic.name, ErrorCode.none)
            configs = [
                part(
                    schema,
                    "CreatableTopicConfigs",
                    name=name,
                    value=value,
                    read_only=False,
                    config_source=5,
                    is_sensitive=False,
                )
                for name, value in ((THEIRS, "5"), (REPLICAS, ""))
                if hasattr(schema, "__version__") and int(schema.__version__) >= 5
            ]
            topics.append(
                part(
                    schema,
                    "CreatableTopicResult",
                    name=topic.name,
                    topic_id=topic_id(topic.name),
                    error_code=code,
                    error_message=None,
                    num_partitions=1,
                    replication_factor=1,
                    configs=None if self.hidden or code != ErrorCode.none else tuple(configs),
                )
            )
        return build(schema, throttle_time=NO_TIME, topics=tuple(topics))

    async def send(self, request: Any) -> Any:
        """The response."""
        reply = await self.creations.answer(intercepted(request_frame(request)), self.broker.broker())
        return read_frame(response_type(CREATE, int(request.__version__)), reply.frame)

    async def codes(self, topics: Topics, version: int = 7, **more: Any) -> list[tuple[str, ErrorCode]]:
        response = await self.send(create(topics, version, **more))
        return [(topic.name, topic.error_code) for topic in response.topics]

    @property
    def configs(self) -> dict[str, dict[str, str]]:
        return {resource.name: values for resource, values in self.store.configs.items()}

    def asked(self) -> dict[str, dict[str, str | None]]:
        """What the broker was asked for, the last time."""
        return {
            topic.name: {config.name: config.value for config in topic.configs}
            for topic in self.broker.asked[-1].topics
        }


@every_version
async def test_quota_configs_are_stored_and_kafka_configs_forwarded(version: int) -> None:
    kit = Kit()
    topics: Topics = {"t": {THEIRS: "60000", RATE: " 5", REPLICAS: "*"}, "u": {THEIRS: "7"}}
    assert await kit.codes(topics, version) == [("t", ErrorCode.none), ("u", ErrorCode.none)]
    assert kit.asked() == {"t": {THEIRS: "60000"}, "u": {THEIRS: "7"}}
    assert kit.broker.asked[-1].topics[0].assignments[0].broker_ids == (1, 2)
    assert kit.configs == {"t": {RATE: "5", REPLICAS: "*"}}
    assert {setting.topic_id for _, setting in kit.log.records} == {topic_id("t").hex}


async def test_forwarded_configs_are_set_here_and_at_the_broker() -> None:
    kit = Kit(rules=ConfigRules(load_kinds(), forwarded=frozenset([REPLICAS])))
    await kit.send(create({"t": {RATE: "5", REPLICAS: "*"}}))
    assert kit.asked() == {"t": {REPLICAS: "*"}}
    assert kit.configs == {"t": {RATE: "5", REPLICAS: "*"}}


async def test_request_without_quota_configs_is_forwarded_unchanged() -> None:
    kit = Kit()
    request = create({"t": {THEIRS: "60000"}, "u": {}})
    await kit.send(request)
    assert kit.broker.frames == [request_frame(request)]
    assert kit.log.records == []


@pytest.mark.parametrize("version", [5, 6, 7])
async def test_response_has_quota_configs(version: int) -> None:
    kit = Kit({ConfigResource(TOPIC, DEFAULT_RESOURCE): {PART: "8"}})
    for validate_only in (True, False):
        request = create({"t": {RATE: "5", REPLICAS: "*"}}, version, validate_only=validate_only)
        [topic] = (await kit.send(request)).topics
        shown = {config.name: (config.value, config.config_source) for config in topic.configs}
        assert shown == {
            THEIRS: ("5", 5),
            RATE: ("5", 1),
            REPLICAS: ("*", 1),
            PART: ("8", 3),
            ACTION: ("throttle", 5),
            "consumer.byte.rate.action": ("throttle", 5),
            "topic.producer.byte.rate.action": ("throttle", 5),
            "topic.consumer.byte.rate.action": ("throttle", 5),
            "follower.replication.throttled.replicas": ("", 5),
        }
        assert bool(kit.configs.get("t")) != validate_only
    kit.hidden = True
    assert (await kit.send(create({"t": {RATE: "5"}}, version))).topics[0].configs is None


@every_version
@pytest.mark.parametrize(
    ("configs", "code"),
    [
        ([(RATE, "0")], ErrorCode.invalid_config),
        ([(RATE, None)], ErrorCode.invalid_request),
        ([(RATE, "5"), (RATE, "5")], ErrorCode.invalid_request),
    ],
)
async def test_invalid_config_rejects_the_topic(version: int, configs: Any, code: ErrorCode) -> None:
    kit = Kit()
    codes = await kit.codes({"a": {}, "t": [(THEIRS, "5"), *configs], "u": {RATE: "5"}}, version)
    assert codes == [("a", ErrorCode.none), ("t", code), ("u", ErrorCode.none)]
    assert list(kit.asked()) == ["a", "u"]
    assert kit.configs == {"u": {RATE: "5"}}
    before = len(kit.broker.asked)
    assert await kit.codes({"t": configs}, version) == [("t", code)]
    assert len(kit.broker.asked) == before


async def test_conflicting_configs_are_rejected() -> None:
    kit = Kit({ConfigResource("broker", DEFAULT_RESOURCE): {"total.bytes.in.per.sec.threshold": "10"}})
    response = await kit.send(create({"t": {PART: "6"}, "u": {PART: "5"}, "v": {PART: "4"}}))
    assert [(topic.name, topic.error_code.value) for topic in response.topics] == [
        ("t", 0),
        ("u", 40),
        ("v", 0),
    ]
    assert response.topics[1].error_message == too_much("t (6), u (5)", 11, 10)
    assert kit.configs["v"] == {PART: "4"}


async def test_topic_rejected_by_the_broker_is_not_stored() -> None:
    kit = Kit(rejects={"t": EXISTS})
    await kit.store.alter_configs(
        [ConfigChange(T, {RATE: "9"})], intercepted(request_frame(create({}))).exchange.client
    )
    assert await kit.codes({"t": {RATE: "5"}}) == [("t", EXISTS)]
    assert kit.configs == {"t": {RATE: "9"}}


@pytest.mark.parametrize("ours", [{}, {ACTION: "reject"}])
async def test_recreated_topic_starts_without_earlier_configs(ours: dict[str, str]) -> None:
    kit = Kit({T: {PART: "3", RATE: "4"}})
    who = intercepted(request_frame(create({}))).exchange.client
    await kit.store.alter_configs([ConfigChange(T, {RATE: "5", PART: None, REPLICAS: "*"})], who)
    await kit.store.alter_configs([ConfigChange(T, {RATE: "50"}, 9_000_000)], who)
    assert await kit.codes({"t": ours}, validate_only=True) == [("t", ErrorCode.none)]
    assert kit.configs == {"t": {RATE: "50", REPLICAS: "*"}}
    await kit.codes({"t": ours})
    assert kit.configs == {"t": {PART: "3", RATE: "4", **ours}}, "the file's hold again"
    kit.store.close()


@every_version
async def test_who_creates_a_topic_does_not_choose_its_limit(version: int) -> None:
    kit = Kit({ConfigResource(TOPIC, DEFAULT_RESOURCE): {RATE: "1000"}})
    kit.broker.rights = FixedRights(may=False, as_judged=True)
    codes = await kit.codes({"t": {RATE: "64000", THEIRS: "5"}, "u": {THEIRS: "7"}}, version)
    assert codes == [("t", ErrorCode.cluster_authorization_failed), ("u", ErrorCode.none)]
    assert kit.asked() == {"u": {THEIRS: "7"}}
    assert kit.configs == {DEFAULT_RESOURCE: {RATE: "1000"}}


@pytest.mark.parametrize("config", LIMITS, ids=lambda config: config.name)
async def test_nor_any_other_limit(config: ConfigKey) -> None:
    kit = Kit()
    kit.broker.rights = FixedRights(may=False, as_judged=True)
    value = "reject" if config.name.endswith("action") else "*" if config.type == LIST else "1000000"
    assert await kit.codes({"t": {config.name: value}}) == [("t", ErrorCode.cluster_authorization_failed)]
    assert (kit.broker.asked, kit.configs) == ([], {})


async def test_limits_may_outlive_their_topics() -> None:
    kit = Kit()
    kit.store.retains_deleted = True
    who = intercepted(request_frame(create({}))).exchange.client
    await kit.store.alter_configs([ConfigChange(T, {RATE: "5"}, topic_id=topic_id("t").hex)], who)
    kit.broker.rights = FixedRights(may=False, as_judged=True)
    [topic] = (await kit.send(create({"t": {}}, validate_only=True))).topics
    assert {config.name: config.value for config in topic.configs}[RATE] == "5"
    assert await kit.codes({"t": {}}) == [("t", ErrorCode.none)]
    assert kit.configs == {"t": {RATE: "5"}}
    kit.broker.rights = FixedRights()
    await kit.codes({"t": {ACTION: "reject"}})
    assert kit.configs == {"t": {RATE: "5", ACTION: "reject"}}


async def test_unavailable_store() -> None:
    kit = Kit()
    kit.log.problem = "no broker responds"
    response = await kit.send(create({"t": {RATE: "5"}, "u": {}}))
    assert [(topic.name, topic.error_code.value) for topic in response.topics] == [("t", 7), ("u", 0)]
    assert "no broker responds" in response.topics[0].error_message
    assert list(kit.asked()) == ["u"]
    kit.log.problem = ""
    kit.log.failure = StoreUnavailable("it went away")
    response = await kit.send(create({"t": {RATE: "5"}}))
    assert response.topics[0].error_code == ErrorCode.request_timed_out
    assert "was created" in response.topics[0].error_message, "half of it is done"
    kit.store.log = None
    assert await kit.codes({"t": {RATE: "5"}, "u": {}}) == [
        ("t", ErrorCode.policy_violation),
        ("u", ErrorCode.none),
    ]


async def test_with_a_controller_mutation_quota() -> None:
    kit = Kit(mutation_rate=0.1)
    request = create({"t": {RATE: "5"}, "u": {RATE: "0"}, "v": {RATE: "7"}, "w": {}})
    reply = await kit.creations.answer(intercepted(request_frame(request)), kit.broker.broker())
    response = read_frame(response_type(CREATE, 7), reply.frame)
    codes = {topic.name: topic.error_code.value for topic in response.topics}
    assert codes == {"t": 0, "u": 40, "v": 0, "w": 89}
    assert list(codes) == ["t", "u", "v", "w"]
    assert kit.configs == {"t": {RATE: "5"}, "v": {RATE: "7"}}
    assert reply.throttle.throttle_seconds > 0


async def test_each_topic_of_a_request_and_of_its_response_is_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With quota configs, and with a controller mutation quota, which counts the same topics."""
    reads: Counter[str] = Counter()

    def count(name: str) -> None:
        read = getattr(CreateTopics, name)

        async def counted(*given: Any) -> Any:
            reads[name] += 1
            return await read(*given)

        monkeypatch.setattr(CreateTopics, name, counted)

    count("read_topic")
    count("read_result")
    kit = Kit(mutation_rate=100.0)
    created = [(name, ErrorCode.none) for name in "tuv"]
    assert await kit.codes({"t": {RATE: "5"}, "u": {THEIRS: "9"}, "v": {}}) == created
    assert reads == {"read_topic": 3, "read_result": 3}


@pytest.mark.parametrize("version", range(FIRST_CREATE_OF_KIO))
async def test_the_oldest_versions(version: int) -> None:
    def text(value: str) -> bytes:
        return len(value).to_bytes(2, "big") + value.encode()

    kit = Kit()
    configs = [(RATE, "5"), (THEIRS, "6")]

    def frame(configs: list[tuple[str, str]]) -> bytes:
        body = b"\0\0\0\1" + text("t") + b"\0\0\0\1\0\1" + b"\0" * 4 + len(configs).to_bytes(4, "big")
        body += b"".join(text(name) + text(value) for name, value in configs) + b"\0\0\0\1" + b"\0" * version
        header = b"\0\x13" + version.to_bytes(2, "big") + b"\0\0\0\1" + text("c")
        return (len(header + body)).to_bytes(4, "big") + header + body

    asked: list[bytes] = []

    async def ask(request: bytes) -> bytes:
        asked.append(request)
        return old_response({"t": 0}, version == 1)[LENGTH:]

    broker = kit.broker.broker()
    broker = type(broker)(broker.cluster_id, 1, Counts({"t": 1}), ask, broker.rights)
    reply = await kit.creations.answer(intercepted(frame(configs)), broker)
    assert (reply.frame, reply.throttle) == (old_response({"t": 0}, version == 1), ALLOW)
    assert asked == [frame([(THEIRS, "6")])]
    assert kit.configs == {"t": {RATE: "5"}}
    reply = await kit.creations.answer(intercepted(frame([(RATE, "x")])), broker)
    assert b"\0\x28" in reply.frame


async def test_request_over_the_limit_is_forwarded_unchanged() -> None:
    kit = Kit()
    request = create({"t": {THEIRS: "x" * MAX_REQUEST_BYTES}})
    await kit.send(request)
    assert kit.broker.frames == [request_frame(request)]


async def test_each_step_of_very_many_topics_gives_way() -> None:
    """Reading the request, taking out the quota configs, reading the response, and storing the configs."""
    kit = Kit(rejects={f"t{number}": EXISTS for number in range(4 * STEPS)})
    topics: Topics = {f"t{number}": {} for number in range(4 * STEPS)}
    async with counted_turns() as turns:
        await kit.send(create(topics, 4))
    assert turns.count >= 22, "of each topic, five steps and those of its assignment"


async def test_no_turn_is_longer_if_there_are_more_topics() -> None:
    kit = Kit(rejects={f"t{number}": EXISTS for number in range(4000)})
    async with turn_lengths() as turns:
        await kit.send(create({f"t{number}": {} for number in range(4000)}, 4))
    assert 0 < turns.longest < 40_000


async def test_malformed_request_and_response() -> None:
    kit = Kit()
    frame = request_frame(create({"t": {RATE: "5"}}))
    with pytest.raises(Malformed):
        await kit.creations.answer(intercepted(frame[:-9]), kit.broker.broker())
    newer = bytearray(frame)
    newer[LENGTH + 3] = CreateTopics.versions.newest + 1
    with pytest.raises(UnsupportedVersion):
        await kit.creations.answer(intercepted(bytes(newer)), kit.broker.broker())
    broker = kit.broker.broker()

    async def ask(request: bytes) -> bytes:
        return b"\0\0\0\1\0\0"

    broken = type(broker)(broker.cluster_id, 1, broker.counts, ask, broker.rights)
    with pytest.raises(RelayError, match="CreateTopics"):
        await kit.creations.answer(intercepted(frame), broken)
