"""RequestAdmission: which requests wait, until when, and for which error a connection ends."""

import pytest

from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE, PRODUCER_BYTE_RATE_ACTION, REJECT
from proxy.quota.limits.resources import NO_RESOURCES, Resources
from proxy.relay.close_reasons import PRODUCE_REJECTED, RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import new_client
from proxy.relay.inflight import InFlight
from proxy.relay.output import RelayOutput
from proxy.relay.requests.produce_gate import UNANSWERED_SECONDS
from proxy.relay.requests.requests import Requests
from proxy.relay.settings import RelaySettings
from proxy.wire.api_keys import FETCH
from proxy.wire.spare_items import SpareItems, SpareTable
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import ResponseView
from tests.support.messages.exchanges import fetch, opaque, produce
from tests.support.messages.produce import produce_request
from tests.support.messages.reading import api_of, request_view
from tests.support.stories.playbook import EVERYONE, START, engine
from tests.support.stories.unnamed_topics import HOT, LIMITED, Names, request

LIMITS = {EVERYONE: {"consumer_byte_rate": 1000.0, "producer_byte_rate": 1000.0}}
REJECTING = Resources({HOT: {PRODUCER_BYTE_RATE.name: "10", PRODUCER_BYTE_RATE_ACTION.name: REJECT}})


class Side:
    """The requests of a connection, in front of the quotas of `quotas`."""

    def __init__(
        self,
        quotas: dict[QuotaEntity, dict[str, float]] | None = None,
        resources: Resources = NO_RESOURCES,
        names: Names | None = None,
    ) -> None:
        self.engine = engine(quotas or {}, resources=resources)
        self.connect(names)

    def connect(self, names: Names | None = None) -> None:
        """A new connection under the same quotas."""
        traffic = Traffic()
        self.output = RelayOutput()
        self.in_flight = InFlight(self.engine, traffic, self.output)
        known: TopicNames = TopicNames() if names is None else names
        self.requests = Requests(
            engine=self.engine,
            traffic=traffic,
            in_flight=self.in_flight,
            output=self.output,
            client=new_client(Identity("ANONYMOUS", "", "127.0.0.1"), b"", traffic, -1),
            settings=RelaySettings(max_frame_bytes=100 << 20, topic_names=known),
            spare_items=SpareItems(SpareTable()),
        )
        self.admission = self.requests.admission

    def read(self, data: bytes, now: float = START) -> bytes:
        self.output.clear()
        self.requests.feed(data)
        self.requests.read(now)
        return b"".join(self.output.to_broker)

    def wake(self, now: float) -> bytes:
        self.output.clear()
        self.requests.wake(now)
        return b"".join(self.output.to_broker)


@pytest.mark.parametrize("data", [produce(1), fetch(1), opaque(1), opaque(1, body=bytes(2 << 20))])
def test_a_request_within_the_quotas_does_not_wait(data: bytes) -> None:
    side = Side({EVERYONE: {"consumer_byte_rate": 1e9, "producer_byte_rate": 1e9}})
    assert len(side.read(data)) == len(data)
    assert (side.admission.waiting, side.requests.wake_at, side.in_flight.count) == (False, 0.0, 1)


def test_a_fetch_waits_for_bytes() -> None:
    side = Side(LIMITS)
    response = ResponseView(11, False, 3000)
    side.engine.charge(request_view(api_of(FETCH), 11), response, side.requests.sender.client, START)
    assert side.read(fetch(1)) == b""
    assert (side.admission.waiting, side.admission.waits_for_debt) == (True, False)
    assert START < side.requests.wake_at <= START + 2.0
    side.admission.give_up_waiting(START)
    assert not side.admission.waiting


def test_a_produce_request_of_a_new_connection_waits_for_the_debt() -> None:
    side = Side(LIMITS)
    side.read(produce(1, size=6000))
    side.connect()
    late = produce(2, size=2000)
    assert side.read(late) == b""
    assert (side.admission.waiting, side.admission.waits_for_debt) == (True, True)
    assert side.wake(side.requests.wake_at) == b"", "the debt is reviewed, and is not paid"
    assert side.wake(START + 5.1) == late
    assert (side.admission.waiting, side.requests.wake_at) == (False, 0.0)


def test_a_produce_request_waits_for_the_names_of_its_topics() -> None:
    names = Names()
    side = Side(resources=LIMITED, names=names)
    asked = request(1, {HOT: [10]})
    assert side.read(asked) == b""
    assert (side.admission.waiting, side.admission.waits_for_debt) == (True, False)
    names.learn(HOT)
    assert side.wake(side.requests.wake_at) == asked
    assert not side.admission.waiting


def test_the_connection_of_a_producer_without_responses_ends_after_a_rejection() -> None:
    side = Side(resources=REJECTING)
    sent = produce_request(1, {HOT: [100]}, {}, version=9, acks=0)
    side.read(sent)
    side.read(produce_request(2, {HOT: [100]}, {}, version=9, acks=0))
    until = side.in_flight.muted_until
    assert until == START + UNANSWERED_SECONDS
    side.in_flight.end_mute(until)
    with pytest.raises(RelayError) as ended:
        side.read(b"", until)
    assert ended.value.reason == side.admission.closing_error.reason == PRODUCE_REJECTED
