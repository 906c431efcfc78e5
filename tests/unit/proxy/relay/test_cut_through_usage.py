import pytest

from proxy.quota.identity import Identity
from proxy.quota.usage import UsageLedger
from proxy.relay.counters.traffic import Traffic
from proxy.relay.cut_through import CutThrough
from proxy.relay.cut_through_usage import CutThroughUsage
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.produced_records import settle_records
from proxy.wire.cursor import NO_ID
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from proxy.wire.views import Item, RequestView


@pytest.mark.parametrize("inbound", [True, False])
def test_items_are_counted_as_they_come_and_the_rest_at_the_end(inbound: bool) -> None:
    traffic = Traffic(topic_partitions=True, usage=UsageLedger())
    usage = CutThroughUsage(traffic, inbound=inbound)
    client = new_client(Identity("u", "", "a"), b"c", traffic, 1)
    cut = CutThrough(Frame([b"x" * 50], 1000, False), Exchange(1, client, api_key=0), Reader([b"x"]), None)
    view = RequestView(0, 7, 1, "c", 996, flexible=False, want_items=True)
    usage.begin(cut)
    assert cut.uncounted == 1000
    view.add(Item("t", NO_ID, 3, 600))
    usage.count_items(cut, view)
    assert (cut.uncounted, view.items) == (400, [])
    settle_records(traffic, client, view, [])
    counted = traffic.partitions["t", NO_ID, 3]
    assert (counted.bytes_in, counted.bytes_out) == ((600, 0) if inbound else (0, 600))
    usage.end(cut)
    assert cut.uncounted == 0
