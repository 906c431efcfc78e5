from proxy.quota.identity import Identity
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.intercepted import Intercepted
from proxy.relay.output import RelayOutput
from proxy.wire.apis.api import RequestHeader


def test_bytes_are_collected_in_order_until_the_next_call() -> None:
    output = RelayOutput()
    output.send_to_broker([b"a"])
    output.send_to_broker([b"b", b"c"])
    output.send_to_client([b"d"])
    to_broker = output.to_broker
    assert (to_broker, output.to_client) == ([b"a", b"b", b"c"], [b"d"])
    output.clear()
    assert (output.to_broker, output.to_client, to_broker) == ([], [], [b"a", b"b", b"c"])


def test_requests_and_responses_of_the_proxy_are_handed_out_once() -> None:
    output = RelayOutput()
    client = new_client(Identity("u", "", "a"), b"", Traffic(), -1)
    request = Intercepted(Exchange(1, client, local=True), RequestHeader(48, 1, 1, b""), b"frame")
    output.intercept(request)
    output.add_broker_response(b"one")
    output.add_broker_response(b"two")
    assert (output.intercepted, output.broker_responses) == ([request], [b"one", b"two"])
    output.clear()
    assert (output.intercepted, output.broker_responses) == ([], [])


def test_outputs_share_nothing() -> None:
    RelayOutput().add_broker_response(b"one")
    assert RelayOutput().broker_responses == []
