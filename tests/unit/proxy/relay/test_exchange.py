from proxy.relay.exchange import Client, Exchange
from proxy.relay.traffic import Bytes


def test_an_exchange_starts_without_an_answer_or_a_wait():
    client = Client("u", "c", "a", Bytes(), b"c")
    exchange = Exchange(7, client)
    assert (exchange.correlation_id, exchange.client, exchange.own) == (7, client, False)
    assert (exchange.api, exchange.request, exchange.answer) == (None, None, None)
    assert exchange.throttled_until == 0.0
