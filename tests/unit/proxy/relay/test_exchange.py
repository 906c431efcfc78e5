import pytest

from proxy.quota.client_ids import represented
from proxy.quota.identity import Identity
from proxy.quota.usage import UsageLedger
from proxy.relay.counters.traffic import Bytes, Traffic
from proxy.relay.exchange import Client, Exchange, local_exchange, new_client
from tests.support.present import present


def test_an_exchange_starts_without_a_response_or_a_wait() -> None:
    client = Client("u", "c", "a", Bytes(), b"c")
    exchange = Exchange(7, client)
    assert (exchange.correlation_id, exchange.client, exchange.local) == (7, client, False)
    assert (exchange.local_response, exchange.throttled_until, exchange.delayed_until) == (None, 0.0, 0.0)


def test_a_local_exchange_has_its_response() -> None:
    client = Client("u", "c", "a", Bytes(), b"c")
    exchange = local_exchange(7, client, 18, b"response")
    assert (exchange.correlation_id, exchange.api_key, exchange.local) == (7, 18, True)
    assert exchange.local_response == b"response"


def test_a_long_client_id_is_nowhere_kept_whole() -> None:
    traffic = Traffic(usage=UsageLedger())
    client = new_client(Identity("u", "", "a"), b"c" * 30_000, traffic, 1)
    assert client.client_id == represented("c" * 30_000)
    assert present(client.usage).client_id == client.client_id
    assert list(traffic.clients) == [("u", client.client_id)]


@pytest.mark.parametrize("prefix", [b"", b"c" * 300], ids=["short", "long"])
def test_client_ids_that_kafka_decodes_to_one_text_are_one_client(prefix: bytes) -> None:
    traffic = Traffic()
    for raw in (b"\xff", b"\xc3", b"\xed\xa0\x80"):
        client = new_client(Identity("u", "", "a"), prefix + raw, traffic, 1)
        assert client.client_id == represented(prefix.decode() + "\ufffd")
    assert len(traffic.clients) == 1


def test_overlapping_waits_count_once() -> None:
    exchange = local_exchange(1, Client("u", "c", "a", Bytes(), b"c"), 0, b"")
    for until, now in ((12.0, 10.0), (11.0, 10.5), (15.0, 11.0), (21.0, 20.0)):
        exchange.throttle(until, now)
    assert (exchange.throttled_until, exchange.throttled_seconds) == (21.0, 6.0)
