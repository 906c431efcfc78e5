"""Relays: what a connection of a client may do, and what one between brokers may."""

from proxy.admin.dispatch import APIS
from proxy.quota.engines import QuotaEngines
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.config_keys import CONSUMER_BYTE_RATE, CONSUMER_BYTE_RATE_ACTION, OMIT
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import Resources
from proxy.relay.counters.traffic import Traffic
from proxy.relay.fetch.sessions import SESSION_MASK
from proxy.relay.settings import RelaySettings
from proxy.server.listener.relays import ClientRelays, ReplicationRelays
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.refresh import ClusterRefresh
from proxy.upstream.topic_names import ClusterTopicNames
from proxy.wire.addresses import Unchanged
from proxy.wire.api_keys import CREATE_TOPICS
from proxy.wire.protected_topics import ProtectedTopics
from tests.support.messages.exchanges import opaque
from tests.support.messages.kio_messages import read_frame, response_type
from tests.support.stories.fetching import BATCH, HOT, OURS, fetch, fetched

NOW = 50.0
ONE_A_SECOND = {QuotaEntity(None, None, DEFAULT): {"connection_creation_rate": 1.0}}
OMITTING = Resources({HOT: {CONSUMER_BYTE_RATE.name: "1000", CONSUMER_BYTE_RATE_ACTION.name: OMIT}})
CREATE = opaque(1, CREATE_TOPICS, 7)


def names() -> ClusterTopicNames:
    cluster = ClusterRefresh("test", ClusterAccess((("k", 9092),), 1.0), lambda view: None)
    return ClusterTopicNames(cluster, lambda seconds, call: None)


def for_clients() -> ClientRelays:
    return ClientRelays(
        engines=QuotaEngines(load_kinds(), Limits(ONE_A_SECOND, resources=OMITTING)),
        addresses=Unchanged(),
        traffic=Traffic(),
        settings=RelaySettings(
            max_frame_bytes=1 << 20,
            apis=APIS,
            intercepted_api_keys=frozenset([CREATE_TOPICS]),
            protected=ProtectedTopics(frozenset()),
            topic_names=names(),
        ),
    )


def between_brokers() -> ReplicationRelays:
    return ReplicationRelays(
        engines=QuotaEngines(load_kinds(), Limits(ONE_A_SECOND)),
        traffic=Traffic(),
        settings=RelaySettings(max_frame_bytes=1 << 20, between_brokers=True, topic_names=names()),
    )


def test_an_address_has_one_rate_however_it_is_spelled() -> None:
    relays = for_clients()
    spellings = ("10.0.0.1", "::ffff:10.0.0.1")
    waits = [relays.connect(3, address, NOW).throttle_seconds for address in spellings * 2]
    assert waits == sorted(set(waits)), "each connection waits longer than the one before"
    relays.give_back(3, spellings[1], NOW)
    assert relays.connect(3, spellings[0], NOW).throttle_seconds == waits[-1]
    assert relays.connect(3, "10.0.0.2", NOW).throttle_seconds == 0.0


def test_brokers_connect_without_delay() -> None:
    relays = between_brokers()
    assert {relays.connect(3, "10.0.0.1", NOW).throttle_seconds for _ in range(20)} == {0.0}


def test_only_clients_have_their_requests_intercepted() -> None:
    output = for_clients().relay(3, "User:alice", "10.0.0.1", NOW).receive_from_client(CREATE, NOW)
    assert (len(output.intercepted), output.to_broker) == (1, [])
    output = between_brokers().relay(3, "User:kafka", "10.0.0.1", NOW).receive_from_client(CREATE, NOW)
    assert (output.intercepted, b"".join(output.to_broker)) == ([], CREATE)


def test_no_consumer_can_compute_the_broker_s_session_id() -> None:
    """Each connection has its own mask: otherwise a consumer could continue another connection's session."""
    relays = for_clients()
    seen = set()
    for _ in range(3):
        relay = relays.relay(3, "User:alice", "10.0.0.1", NOW)
        relay.receive_from_client(fetch(1, {(HOT, 0): 5}, session=(0, 0)), NOW)
        output = relay.receive_from_broker(fetched(1, {(HOT, 0): (9, BATCH)}, session_id=OURS), NOW)
        response = read_frame(response_type(1, 12), b"".join(output.to_client))
        seen.add(response.session_id ^ OURS)
    assert len(seen) == 3
    assert not seen & {0, SESSION_MASK}
