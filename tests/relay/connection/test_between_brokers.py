"""Where brokers ask each other: nothing that a broker sends is rejected, intercepted or changed."""

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.relay.close_reasons import NOT_A_BROKER
from proxy.relay.counters.traffic import Traffic
from proxy.wire.addresses import Unchanged
from proxy.wire.api_keys import CHANGES_OF_CLIENTS, FETCH, METADATA, api_name
from tests.support.messages.exchanges import (
    api_versions,
    fetch,
    fetch_response,
    opaque,
    produce,
    responded,
)
from tests.support.messages.kio_messages import BROKER_HOST, response_frame, response_type
from tests.support.stories.playbook import Playbook, drive


def story(traffic: Traffic | None = None) -> Playbook:
    return Playbook(
        drive(
            QuotaEngine([]),
            Unchanged(),
            traffic or Traffic(),
            principal="u",
            between_brokers=True,
        )
    )


@pytest.mark.parametrize("api_key", [METADATA, 6, 18, 42, 1000])
def test_what_is_no_fetch_passes_at_any_version(api_key: int) -> None:
    asked = opaque(7, api_key, 99)
    story().client(asked).to_broker(asked).broker(responded(7)).to_client(responded(7)).idle()


@pytest.mark.parametrize("api_key", CHANGES_OF_CLIENTS)
def test_what_no_broker_sends_ends_the_connection(api_key: int) -> None:
    """A client that reaches the listener changes nothing that the proxy would handle on one for clients."""
    story().client_fails(opaque(7, api_key, 4), reason=NOT_A_BROKER, says=api_name(api_key))


def test_api_versions_is_not_cut() -> None:
    asked = api_versions(7, version=4)
    told = responded(7, bytes(200))
    story().client(asked).to_broker(asked).broker(told).to_client(told).idle()


def test_a_fetch_of_an_unknown_version_passes_and_is_counted() -> None:
    traffic = Traffic()
    asked = opaque(7, FETCH, 99)
    story(traffic).client(asked).to_broker(asked).broker(responded(7)).to_client(responded(7)).idle()
    assert traffic.unread_fetches == 1


def test_a_fetch_that_can_be_read_is_not_counted() -> None:
    traffic = Traffic()
    asked = fetch(7, version=17)
    story(traffic).client(asked).to_broker(asked)
    assert traffic.unread_fetches == 0


@pytest.mark.parametrize("records", [b"records", bytes(2 << 20)], ids=["small", "large"])
def test_addresses_are_those_of_the_brokers(records: bytes) -> None:
    version = 17
    endpoint = response_type(FETCH, version).__annotations__["node_endpoints"].__args__[0]
    hint = endpoint(node_id=1, host=BROKER_HOST, port=9092, rack=None)
    told = response_frame(fetch_response(version, records, node_endpoints=(hint,)), 7)
    asked = fetch(7, version=version)
    story().client(asked).to_broker(asked).broker(told).to_client(told).idle()


def test_acks_0_has_no_response() -> None:
    asked, next_asked = produce(7, acks=0), opaque(8)
    story().client(asked, next_asked).to_broker(asked, next_asked).broker(responded(8)).to_client(
        responded(8)
    ).idle()
