from proxy.relay.exchange import Client, Exchange, local_exchange
from proxy.relay.traffic import Bytes


def test_an_exchange_starts_without_a_response_or_a_wait():
    client = Client("u", "c", "a", Bytes(), b"c")
    exchange = Exchange(7, client)
    assert (exchange.correlation_id, exchange.client, exchange.local) == (7, client, False)
    assert (exchange.local_response, exchange.throttled_until, exchange.delayed_until) == (None, 0.0, 0.0)


def test_a_local_exchange_has_its_response():
    client = Client("u", "c", "a", Bytes(), b"c")
    exchange = local_exchange(7, client, 18, b"response")
    assert (exchange.correlation_id, exchange.api_key, exchange.local) == (7, 18, True)
    assert exchange.local_response == b"response"
