"""A quota may want requests handed out whole; whether it does can change at any moment."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.limits import Limits
from proxy.relay.counters.traffic import Traffic
from proxy.wire.addresses import Addresses
from proxy.wire.api_keys import METADATA, SYNC_GROUP
from tests.support.messages.exchanges import opaque, responded
from tests.support.messages.kio_messages import (
    BROKER_HOST,
    PROXY_HOST,
    PROXY_PORT,
    Ports,
    request_frame,
    response_frame,
    response_type,
)
from tests.support.messages.requests import build, metadata, part
from tests.support.messages.streams_groups import heartbeat
from tests.support.stories.playbook import START, Playbook, drive

MUTATED = Limits({QuotaEntity("another user", None): {"controller_mutation_rate": 1.0}})
NOBODY = Limits({})


@pytest.fixture
def engine() -> QuotaEngine:
    return QuotaEngine([kind.build() for kind in load_kinds()])


@pytest.fixture
def story(engine: QuotaEngine) -> Playbook:
    return Playbook(drive(engine, Addresses(), Traffic(), client_address="::1", max_frame_bytes=1 << 20))


@pytest.mark.parametrize("api_key", [19, 20, 37])
def test_mutations_pass_as_they_are_while_nobody_has_such_a_quota(api_key: int, story: Playbook) -> None:
    story.client(opaque(1, api_key)).to_broker(opaque(1, api_key))
    story.broker(responded(1)).to_client(responded(1)).idle()
    assert story.relay.take_intercepted() == []


@pytest.mark.parametrize("api_key", [19, 20, 37])
def test_mutations_are_handed_out_while_anybody_has_one(
    api_key: int, engine: QuotaEngine, story: Playbook
) -> None:
    engine.configure(MUTATED, START)
    story.client(opaque(1, api_key)).to_broker()
    [request] = story.relay.take_intercepted()
    assert request.header.api_key == api_key
    story.relay.answer(request.exchange, responded(1), START)
    story.to_client(responded(1)).idle()


def test_others_pass(engine: QuotaEngine, story: Playbook) -> None:
    engine.configure(MUTATED, START)
    story.client(opaque(1, 36)).to_broker(opaque(1, 36))


def test_a_connection_that_is_there_already_notices_the_change(engine: QuotaEngine, story: Playbook) -> None:
    story.client(opaque(1, 19)).to_broker(opaque(1, 19)).broker(responded(1)).to_client(responded(1))
    engine.configure(MUTATED, START)
    story.client(opaque(2, 19)).to_broker().own(responded(2)).to_client(responded(2))
    engine.configure(NOBODY, START)
    story.client(opaque(3, 19)).to_broker(opaque(3, 19))


# Metadata requests may create topics: those of clients with such a quota are handed out, and then forwarded.

LIMITED = Limits({QuotaEntity(None, "limited"): {"controller_mutation_rate": 1.0}})


@pytest.fixture
def ports_story(engine: QuotaEngine) -> Playbook:
    engine.configure(LIMITED, START)
    return Playbook(drive(engine, Ports(), Traffic(), client_address="::1", max_frame_bytes=100 << 20))


def asked(
    correlation_id: int = 1, client_id: str = "limited", version: int = 9, names: Sequence[str] = ("a",)
) -> bytes:
    return request_frame(metadata(names, version, create=True), correlation_id, client_id)


def told(correlation_id: int = 1, version: int = 9, port: int = 9092) -> bytes:
    schema = response_type(METADATA, version)
    broker = part(
        schema,
        "MetadataResponseBroker",
        node_id=1,
        host=BROKER_HOST if port == 9092 else PROXY_HOST,
        port=port,
    )
    message = build(
        schema,
        throttle_time=timedelta(0),
        brokers=(broker,),
        cluster_id="c",
        controller_id=1,
        topics=(),
        error_code=ErrorCode.none,
    )
    return response_frame(message, correlation_id)


@pytest.mark.parametrize("version", [0, 4, 9, 13])
def test_metadata_of_a_limited_client_is_handed_out_and_forwarded(
    version: int, ports_story: Playbook
) -> None:
    story = ports_story
    request, other = asked(version=version), asked(version=version, names=("b",))
    story.client(request).to_broker()
    [intercepted] = story.relay.take_intercepted()
    assert (intercepted.header.api_key, intercepted.frame) == (METADATA, request[4:])
    story.relay.forward(intercepted.exchange, other, START)
    # The response has the proxy's addresses, as any other.
    story.to_broker(other).broker(told(version=version)).to_client(told(version=version, port=PROXY_PORT + 1))
    story.idle()


def test_what_the_proxy_asks_before_is_not_for_the_client(ports_story: Playbook) -> None:
    story = ports_story
    story.client(opaque(1, 36)).to_broker(opaque(1, 36))
    story.client(asked(2) + opaque(3, 36)).to_broker()
    [intercepted] = story.relay.take_intercepted()
    story.relay.ask_broker(intercepted.exchange, asked(2), START)
    story.to_broker(asked(2)).broker(responded(1)).to_client(responded(1)).broker(told(2)).to_client()
    assert story.relay.take_broker_responses() == [told(2)[4:]]
    story.relay.forward(intercepted.exchange, asked(2), START)
    # Requests behind it are read now.
    story.to_broker(asked(2), opaque(3, 36))
    story.broker(told(2)).to_client(told(2, port=PROXY_PORT + 1)).broker(responded(3)).to_client(
        responded(3)
    ).idle()


@pytest.mark.parametrize("limits", [LIMITED, NOBODY])
def test_metadata_of_others_passes(limits: Limits, engine: QuotaEngine, ports_story: Playbook) -> None:
    engine.configure(limits, START)
    request = asked(client_id="free")
    ports_story.client(request).to_broker(request)
    assert ports_story.relay.take_intercepted() == []


@pytest.mark.parametrize(("client_id", "handed_out"), [("limited", True), ("free", False)])
def test_heartbeats_of_a_limited_client_s_streams_groups_are_handed_out(
    client_id: str, handed_out: bool, ports_story: Playbook
) -> None:
    """They may create topics, too."""
    story = ports_story
    beat = request_frame(heartbeat("group", "member", ["changelog"]), 1, client_id)
    other = opaque(2, SYNC_GROUP)
    story.client(beat + other)
    if not handed_out:
        assert story.to_broker(beat, other).relay.take_intercepted() == []
        return
    [intercepted] = story.to_broker().relay.take_intercepted()
    assert intercepted.frame == beat[4:]
    story.relay.ask_broker(intercepted.exchange, beat, START)
    story.to_broker(beat).broker(responded(1))
    story.relay.answer(intercepted.exchange, responded(1), START)
    story.to_client(responded(1)).to_broker(other)


def test_large_metadata_of_a_limited_client_is_buffered(ports_story: Playbook) -> None:
    request = asked(names=[f"{number:0200}" for number in range(6000)])
    assert len(request) > 1 << 20
    ports_story.client(request[: 1 << 20]).to_broker()
    ports_story.client(request[1 << 20 :]).to_broker()
    [intercepted] = ports_story.relay.take_intercepted()
    assert intercepted.frame == request[4:]
