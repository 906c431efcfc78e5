"""RequestCutThrough: what the broker gets of a request that is forwarded while it arrives, and when."""

import pytest

from proxy.quota.identity import Identity
from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE
from proxy.quota.limits.resources import NO_RESOURCES, Resources
from proxy.quota.usage import UsageLedger
from proxy.relay.counters.traffic import Traffic
from proxy.relay.cut_through import CutThrough
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.inflight import InFlight
from proxy.relay.output import RelayOutput
from proxy.relay.requests.charges import RequestCharges
from proxy.relay.requests.cut_through import RequestCutThrough
from proxy.relay.requests.parser import RequestParser
from proxy.relay.service_clock import ServiceClock
from proxy.relay.settings import RelaySettings
from proxy.wire.api_keys import PRODUCE
from proxy.wire.cursor import NO_ID
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Malformed
from proxy.wire.frames import CUT_THROUGH_BYTES, Frame
from proxy.wire.reader import Reader
from proxy.wire.spare_items import SpareItems, SpareTable
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import Item, RequestView
from tests.support.messages.kio_messages import framed
from tests.support.stories.playbook import START, engine

FRAME = framed(b"0123456789")
SIZE = len(FRAME)


class Side:
    def __init__(self, resources: Resources = NO_RESOURCES) -> None:
        self.traffic = Traffic(topic_partitions=True, usage=UsageLedger())
        self.output = RelayOutput()
        quotas = engine({}, resources=resources)
        self.in_flight = InFlight(quotas, self.traffic, self.output)
        self.large = RequestCutThrough(
            self.output,
            self.traffic,
            RequestParser(
                quotas,
                self.traffic,
                RelaySettings(max_frame_bytes=1 << 20),
                SpareItems(SpareTable()),
            ),
            RequestCharges(quotas, self.in_flight, TopicNames()),
            ServiceClock(),
        )
        client = new_client(Identity("u", "c", "127.0.0.1"), b"c", self.traffic, 0)
        self.exchange = Exchange(1, client, api_key=PRODUCE)
        self.view = RequestView(PRODUCE, 9, 1, "c", 100, flexible=True, want_items=True)

    def cut(
        self, view: RequestView | None = None, *, first: bytes = FRAME[:6], size: int = SIZE
    ) -> CutThrough:
        frame = Frame([first], size, False)
        return CutThrough(frame, self.exchange, Reader([first], LENGTH_SIZE), view)

    @property
    def sent(self) -> bytes:
        return b"".join(self.output.to_broker)


def test_it_has_been_sent_with_its_last_part() -> None:
    side = Side()
    side.large.begin(side.cut(), START)
    assert (side.sent, side.exchange.sent_at) == (FRAME[:6], 0.0)
    for part, complete in ((FRAME[6:8], False), (FRAME[8:], True)):
        assert side.large.read_on(Frame([part], SIZE, complete)) is None
        side.large.forward(complete, START)
        assert side.exchange.sent_at == (START if complete else 0.0)
    assert side.sent == FRAME


def test_a_field_that_is_too_long_is_malformed() -> None:
    side = Side()
    cut = side.cut(side.view, size=3 * CUT_THROUGH_BYTES)
    side.large.begin(cut, START)
    assert side.sent == b"", "nothing has been read"
    cut.feed([bytes(CUT_THROUGH_BYTES)])
    with pytest.raises(Malformed):
        side.large.forward(False, START)


def test_items_of_a_part_are_charged_and_let_go() -> None:
    side = Side(Resources({"t": {PRODUCER_BYTE_RATE.name: "1000"}}))
    cut = side.cut(side.view)
    side.large.begin(cut, START)
    side.view.items = [Item("t", NO_ID, 0, 3000)]
    verdict = side.large.charge(side.view, START)
    assert verdict.throttle_seconds == pytest.approx(2.0), "two seconds beyond a burst of one second"
    assert side.exchange.throttled_until == pytest.approx(START + 2.0)
    assert (side.view.items, cut.uncounted) == ([], SIZE - 3000)


def test_what_has_come_of_a_request_counts_at_the_end_of_the_connection() -> None:
    side = Side()
    cut = side.cut(side.view)
    side.large.begin(cut, START)
    assert cut.uncounted == SIZE
    side.large.end()
    assert cut.uncounted == 0
