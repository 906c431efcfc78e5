"""WaitingProduce: what is kept of a Produce request; tests/relay has its stories."""

from proxy.relay.counters.traffic import Bytes
from proxy.relay.exchange import Client, Exchange
from proxy.relay.requests.waiting_produce import WaitingProduce
from proxy.wire.api_keys import PRODUCE
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView


def test_it_keeps_the_frame_though_the_splitter_uses_its_own_again() -> None:
    frame = Frame([b"abcd"], 4, True)
    exchange = Exchange(1, Client("u", "c", "a", Bytes(), b"c"))
    kept = WaitingProduce(frame, exchange, Reader([]), RequestView(PRODUCE, 9, 1, "c", 100)).frame
    assert kept is not frame
    assert (kept.pieces, kept.size, kept.complete) == ([b"abcd"], 4, True)
