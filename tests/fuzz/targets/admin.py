"""Intercepted requests: a response that kio can read, or a documented error, whatever the client and its
broker send; and requests that kio reads are read.

Input: how the broker responds, its responses with their lengths in front, and the request without its length.
"""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from kio.serial.errors import SerialError

from proxy.admin.authority import Authority, ClientRights
from proxy.admin.broker import Broker
from proxy.admin.client_quotas import ClientQuotas
from proxy.admin.configs.alter import AlterConfigs
from proxy.admin.configs.create_topics import TopicCreations
from proxy.admin.configs.describe import DescribeConfigs
from proxy.admin.configs.store import ConfigsStore
from proxy.admin.dispatch import APIS, AdminApis
from proxy.admin.mutations.mutations import ControllerMutations
from proxy.quota.identity import QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.kinds.controller_mutation import CONTROLLER_MUTATION_RATE, ControllerMutation
from proxy.quota.limits.limits import Limits
from proxy.relay.close_reasons import RelayError
from proxy.relay.counters.traffic import Bytes
from proxy.relay.exchange import Client, Exchange
from proxy.relay.intercepted import Intercepted
from proxy.security.settings import Changes
from proxy.upstream.responses import checked
from proxy.wire.apis.api import read_request_header
from proxy.wire.errors import ProtocolError
from proxy.wire.protected_topics import ProtectedTopics
from proxy.wire.reader import Reader, text
from tests.fuzz.harness import Data, Target, part
from tests.support.admin.configs_broker import Counts
from tests.support.admin.rights import FixedRights
from tests.support.messages.kio_messages import (
    decode,
    request_frame,
    request_type,
    response_frame,
    response_type,
    versions,
)
from tests.support.messages.random_messages import sample
from tests.support.quotas.config_rules import CONFIG_RULES
from tests.support.quotas.memory_store import memory_store

LOOP: Final = asyncio.new_event_loop()
KEYS: Final = [key for kind in load_kinds() for key in kind.keys]
ASKS, MUTATES, PROTECTS = 1, 2, 4
"""Bits: the rights are asked for, there is a controller mutation quota, a topic is protected."""
MAX_QUESTIONS: Final = 8


def run(data: bytes) -> None:
    LOOP.run_until_complete(_run(data))


async def _run(data: bytes) -> None:
    given = Data(data)
    how = given.byte()
    responses = [given.part() for _ in range(given.byte() % MAX_QUESTIONS)]
    payload = given.rest()
    try:
        request = _intercepted(payload)
    except ProtocolError:
        return
    header = request.header
    if header.api_key not in AdminApis.api_keys:
        return
    api = APIS.known[header.api_key]
    assert api is not None
    known = api.oldest <= header.api_version <= api.newest
    readable = known and _kio_reads(request)
    asked: list[bytes] = []

    async def ask(frame: bytes) -> bytes:
        asked.append(frame)
        _check_frame(frame)
        if len(asked) > len(responses):
            raise RelayError("broker_closed", "no more responses")
        return int(header.correlation_id).to_bytes(4, "big", signed=True) + responses[len(asked) - 1]

    try:
        reply = await _apis(how).answer(request, _broker(how, ask, request))
    except RelayError:
        return
    except ProtocolError as error:
        if readable and not asked and "the proxy takes" not in str(error):
            raise AssertionError("kio reads it") from error
        return
    _check_frame(reply.frame)
    assert reply.frame[4:8] == int(header.correlation_id).to_bytes(4, "big", signed=True)
    assert reply.throttle.throttle_seconds >= 0.0
    if not asked and header.api_version in versions(header.api_key):
        _read(response_type(header.api_key, header.api_version), reply.frame[4:])


def _intercepted(payload: bytes) -> Intercepted:
    header = read_request_header(Reader([payload]))
    client_id = text(header.raw_client_id)
    client = Client("admin", client_id, "127.0.0.1", Bytes(), header.raw_client_id, None)
    return Intercepted(Exchange(header.correlation_id, client, local=True), header, payload)


def _kio_reads(request: Intercepted) -> bool:
    """Whether kio reads the request to its end."""
    header = request.header
    if header.api_version not in versions(header.api_key):
        return False
    schema = request_type(header.api_key, header.api_version)
    reader = Reader([request.frame])
    reader.take(header.size)
    try:
        if schema.__flexible__:
            reader.skip_tags()
        at = reader.offset
        payload = checked(request.frame, schema, at=at)
        return at + decode(schema, payload[at:])[1] == len(payload)
    except (ProtocolError, SerialError, ValueError):
        return False


def _read(schema: Any, payload: bytes) -> None:
    _, at = decode(schema.__header_schema__, payload)
    _, size = decode(schema, payload[at:])
    assert at + size == len(payload), "the response is longer than the message"


def _check_frame(frame: bytes) -> None:
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4


def _apis(how: int) -> AdminApis:
    store, _ = memory_store({QuotaEntity("alice", None): {"producer_byte_rate": 5.0}})
    quota = ControllerMutation()
    rate = {QuotaEntity("admin", None): {CONTROLLER_MUTATION_RATE: 1.0}} if how & MUTATES else {}
    quota.configure(Limits(rate), 1000.0)
    mutations = ControllerMutations(quota, lambda: 1000.0)
    configs = ConfigsStore(store)
    protected = ProtectedTopics(frozenset(["__quota_proxy_config", "text"] if how & PROTECTS else []))
    return AdminApis(
        client_quotas=ClientQuotas(store, KEYS),
        describing=DescribeConfigs(configs, CONFIG_RULES),
        altering=AlterConfigs(configs, CONFIG_RULES),
        creations=TopicCreations(configs, CONFIG_RULES, mutations),
        mutations=mutations,
        authority=Authority(Changes()),
        protected=protected,
    )


def _broker(how: int, ask: Any, request: Intercepted) -> Broker:
    rights: Any = FixedRights()
    if how & ASKS:
        client, correlation_id = request.exchange.client, request.header.correlation_id
        rights = ClientRights(Authority(Changes()), ask, client, correlation_id, known_to_broker=True)
    return Broker("cluster", 1, Counts({"text": 3, "t": 1}), ask, rights)


def seeds() -> Iterator[bytes]:
    for key in sorted(AdminApis.api_keys):
        for version in versions(key):
            request = request_frame(sample(request_type(key, version)))[4:]
            response = response_frame(sample(response_type(key, version)))[8:]
            for how in (0, MUTATES, PROTECTS, MUTATES | PROTECTS):
                yield bytes([how, 3]) + part(response) * 3 + request
            allowed = response_frame(sample(response_type(29, 1)))[8:]
            yield bytes([ASKS, 4]) + part(allowed) + part(response) * 3 + request


WORDS: Final = (
    *(key.name.encode() for key in KEYS),
    *(b"producer.byte.rate", b"leader.replication.throttled.replicas", b"expires.at.ms", b"expires_at_ms"),
    *(b"user", b"client-id", b"ip", b"lasting", b"<default>", b"__quota_proxy_config", b"topic_id"),
)
TARGET: Final = Target(run, seeds, WORDS)
