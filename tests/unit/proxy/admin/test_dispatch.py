"""Dispatch: a request's frame, as the relay hands it out, becomes the answer's."""

import sys

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.client_quotas import ClientQuotas
from proxy.admin.dispatch import AdminApis
from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.quota import LONG, QuotaKey
from proxy.relay.exchange import Client, Exchange
from proxy.relay.intercepted import Intercepted
from proxy.relay.traffic import Bytes
from proxy.wire.apis import read_request_header
from proxy.wire.errors import Malformed, UnsupportedVersion
from proxy.wire.reader import Reader
from tests.support.memory_store import memory_store
from tests.support.messages import LENGTH, read_frame, request_frame, request_type, response_type

ALICE = QuotaEntity("alice", None)
RATE = "producer_byte_rate"


def intercepted(frame: bytes) -> Intercepted:
    """A whole frame as the relay hands it out."""
    header = read_request_header(Reader([frame], LENGTH))
    who = Identity("bob", "client", "10.0.0.1")
    return Intercepted(
        Exchange(header.correlation_id, Client(who, Bytes(), b"client"), own=True), header, frame[LENGTH:]
    )


@pytest.mark.parametrize("version", [0, 1])
async def test_both_apis(version: int) -> None:
    store, log = memory_store({})
    apis = AdminApis(ClientQuotas(store, [QuotaKey(RATE, LONG)]))
    assert apis.api_keys == {48, 49}
    alter = request_type(49, version)
    kio = sys.modules[alter.__module__]
    entry = kio.EntryData(
        entity=(kio.EntityData(entity_type="user", entity_name="alice"),),
        ops=(kio.OpData(key=RATE, value=5.0, remove=False),),
    )
    request = alter(entries=(entry,), validate_only=False)
    answer = read_frame(response_type(49, version), await apis.answer(intercepted(request_frame(request))))
    assert [result.error_code for result in answer.entries] == [ErrorCode.none]
    assert store.effective == {ALICE: {RATE: 5.0}}
    [(_, setting)] = log.records
    assert (setting.by, setting.client_id, setting.origin) == ("bob", "client", "10.0.0.1")
    describe = request_type(48, version)(components=(), strict=False)
    answer = read_frame(response_type(48, version), await apis.answer(intercepted(request_frame(describe))))
    assert [value.value for entry in answer.entries for value in entry.values] == [5.0]


@pytest.mark.parametrize("api_key", [48, 49])
async def test_versions_that_are_not_offered(api_key: int) -> None:
    """A broker closes the connection; the gateway does for this error."""
    apis = AdminApis(ClientQuotas(memory_store({})[0], []))
    fields = {48: {"components": (), "strict": True}, 49: {"entries": (), "validate_only": True}}
    frame = bytearray(request_frame(request_type(api_key, 1)(**fields[api_key])))
    frame[LENGTH + 3] = 2
    with pytest.raises(
        UnsupportedVersion, match=f"key {api_key} is asked at version 2; ApiVersions offers up to 1"
    ):
        await apis.answer(intercepted(bytes(frame)))


async def test_a_body_that_does_not_parse() -> None:
    apis = AdminApis(ClientQuotas(memory_store({})[0], []))
    frame = request_frame(request_type(49, 1)(entries=(), validate_only=True))
    with pytest.raises(Malformed):
        await apis.answer(intercepted(frame[:-2]))
