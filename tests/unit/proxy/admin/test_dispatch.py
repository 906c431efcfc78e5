"""Dispatch: from the frame of an intercepted request to the frame of its response."""

import sys

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.authority import Authority
from proxy.admin.client_quotas import ClientQuotas
from proxy.admin.configs.alter import AlterConfigs
from proxy.admin.configs.create_topics import TopicCreations
from proxy.admin.configs.describe import DescribeConfigs
from proxy.admin.configs.store import ConfigsStore
from proxy.admin.dispatch import APIS, AdminApis
from proxy.admin.mutations.mutations import ControllerMutations
from proxy.quota.identity import QuotaEntity
from proxy.quota.kinds.controller_mutation import ControllerMutation
from proxy.quota.limits.resources import LONG
from proxy.quota.quota import QuotaKey
from proxy.relay.counters.traffic import Bytes
from proxy.relay.exchange import Client, Exchange
from proxy.relay.intercepted import Intercepted
from proxy.security.settings import Changes
from proxy.store.quota_store import QuotaStore
from proxy.wire.api_keys import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from proxy.wire.apis.api import Api, read_request_header
from proxy.wire.errors import Malformed, UnsupportedVersion
from proxy.wire.protected_topics import ProtectedTopics
from proxy.wire.reader import Reader
from tests.support.admin.configs_broker import FakeBroker
from tests.support.messages.configs import (
    SET,
    TOPIC,
    alter_request,
    describe_request,
    incremental_request,
    results,
)
from tests.support.messages.kio_messages import (
    LENGTH,
    read_frame,
    request_frame,
    request_type,
    response_type,
    versions,
)
from tests.support.messages.mutations import NO_TIME, SECONDS_30, create_partitions
from tests.support.messages.requests import build
from tests.support.quotas.config_rules import CONFIG_RULES
from tests.support.quotas.memory_store import memory_store

ALICE = QuotaEntity("alice", None)
RATE = "producer_byte_rate"


def intercepted(frame: bytes) -> Intercepted:
    """A whole frame as the relay hands it out."""
    header = read_request_header(Reader([frame], LENGTH))
    client = Client("bob", "client", "10.0.0.1", Bytes(), b"client")
    return Intercepted(Exchange(header.correlation_id, client, local=True), header, frame[LENGTH:])


BROKER = FakeBroker().broker()
INTERCEPTED = [
    api
    for api in APIS.known
    if api is not None and APIS.read[api.key] is None and api.key not in (SASL_HANDSHAKE, SASL_AUTHENTICATE)
]


def admin_apis(store: QuotaStore) -> AdminApis:
    configs = ConfigsStore(store)
    mutations = ControllerMutations(ControllerMutation(), lambda: 0.0)
    return AdminApis(
        client_quotas=ClientQuotas(store, [QuotaKey(RATE, LONG)]),
        describing=DescribeConfigs(configs, CONFIG_RULES),
        altering=AlterConfigs(configs, CONFIG_RULES),
        creations=TopicCreations(configs, CONFIG_RULES, mutations),
        mutations=mutations,
        authority=Authority(Changes()),
        protected=ProtectedTopics(frozenset(["ours"])),
    )


@pytest.mark.parametrize("api", INTERCEPTED, ids=lambda api: api.name)
def test_versions_are_kafkas(api: Api) -> None:
    """A newer kio with a newer version fails here: until the proxy answers it, no client is offered it."""
    known = versions(api.key)
    assert api.oldest == 0
    assert api.newest >= known[-1]
    for version in known:
        assert request_type(api.key, version).__flexible__ is (version >= api.flexible_from)
        header = response_type(api.key, version).__header_schema__
        assert api.flexible_response_header(version) is header.__flexible__


def test_intercepted_apis_limit_what_clients_are_offered() -> None:
    """None of them is read by a relay, which hands them out whole."""
    assert [api.key for api in INTERCEPTED] == [19, 20, 21, 32, 33, 37, 44, 48, 49, 88]


@pytest.mark.parametrize("version", [0, 1])
async def test_client_quotas(version: int) -> None:
    store, log = memory_store({})
    apis = admin_apis(store)
    assert apis.api_keys == {19, 20, 21, 32, 33, 37, 44, 48, 49}
    alter = request_type(49, version)
    kio = sys.modules[alter.__module__]
    entry = kio.EntryData(
        entity=(kio.EntityData(entity_type="user", entity_name="alice"),),
        ops=(kio.OpData(key=RATE, value=5.0, remove=False),),
    )
    request = alter(entries=(entry,), validate_only=False)
    reply = await apis.answer(intercepted(request_frame(request)), BROKER)
    response = read_frame(response_type(49, version), reply.frame)
    assert [result.error_code for result in response.entries] == [ErrorCode.none]
    assert store.effective == {ALICE: {RATE: 5.0}}
    [(_, setting)] = log.records
    assert (setting.by, setting.client_id, setting.origin) == ("bob", "client", "10.0.0.1")
    describe = request_type(48, version)(components=(), strict=False)
    reply = await apis.answer(intercepted(request_frame(describe)), BROKER)
    response = read_frame(response_type(48, version), reply.frame)
    assert [value.value for entry in response.entries for value in entry.values] == [5.0]


async def test_configs() -> None:
    store, _ = memory_store({})
    apis = admin_apis(store)
    topic = (TOPIC, "t")
    for request in (
        incremental_request([(topic, [("producer.byte.rate", SET, "5")])]),
        alter_request([(topic, {"producer.byte.rate": "6"})]),
    ):
        reply = await apis.answer(intercepted(request_frame(request)), BROKER)
        response = read_frame(response_type(int(request.__api_key__), int(request.__version__)), reply.frame)
        assert [code for _, code, _ in results(response)] == [ErrorCode.none]
    request = describe_request([(topic, ["producer.byte.rate"])])
    reply = await apis.answer(intercepted(request_frame(request)), BROKER)
    response = read_frame(response_type(32, 4), reply.frame)
    assert [config.value for config in response.results[0].configs] == ["6"]


@pytest.mark.parametrize(
    ("api_key", "more"),
    [
        (CREATE_TOPICS, {"validate_only": False}),
        (DELETE_TOPICS, {}),
        (DELETE_RECORDS, {}),
        (CREATE_PARTITIONS, {"validate_only": False}),
    ],
)
async def test_the_broker_gets_requests_that_change_topics(api_key: int, more: dict[str, bool]) -> None:
    version = versions(api_key)[-1]
    schema = response_type(api_key, version)
    results = {DELETE_TOPICS: "responses", CREATE_PARTITIONS: "results"}.get(api_key, "topics")
    broker = FakeBroker()
    broker.respond = lambda request: build(schema, throttle_time=NO_TIME, **{results: ()})
    request = build(request_type(api_key, version), topics=(), timeout=SECONDS_30, **more)
    frame = request_frame(request)
    reply = await admin_apis(memory_store({})[0]).answer(intercepted(frame), broker.broker())
    assert broker.frames == [frame]
    assert getattr(read_frame(schema, reply.frame), results) == ()


async def test_the_controller_gets_no_growth_without_end() -> None:
    """Whether there is a controller mutation quota or not."""
    broker = FakeBroker()
    broker.respond = lambda request: build(
        response_type(METADATA, 12),
        throttle_time=NO_TIME,
        brokers=(),
        cluster_id="cluster",
        controller_id=1,
        topics=(),
    )
    frame = request_frame(create_partitions({"t": 10_000_000}))
    reply = await admin_apis(memory_store({})[0]).answer(intercepted(frame), broker.broker())
    [topic] = read_frame(response_type(CREATE_PARTITIONS, 3), reply.frame).results
    assert topic.error_code == ErrorCode.policy_violation
    assert [request.__api_key__ for request in broker.asked] == [METADATA]


@pytest.mark.parametrize("api_key", [48, 49])
async def test_unsupported_version_is_rejected(api_key: int) -> None:
    """A broker closes the connection; the gateway does for this error."""
    apis = admin_apis(memory_store({})[0])
    fields = {48: {"components": (), "strict": True}, 49: {"entries": (), "validate_only": True}}
    frame = bytearray(request_frame(request_type(api_key, 1)(**fields[api_key])))
    frame[LENGTH + 3] = 2
    with pytest.raises(UnsupportedVersion):
        await apis.answer(intercepted(bytes(frame)), BROKER)


async def test_malformed_body() -> None:
    apis = admin_apis(memory_store({})[0])
    frame = request_frame(request_type(49, 1)(entries=(), validate_only=True))
    with pytest.raises(Malformed):
        await apis.answer(intercepted(frame[:-2]), BROKER)
