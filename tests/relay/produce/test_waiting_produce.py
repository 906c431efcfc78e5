"""The first Produce request of a connection waits until what its user owes is paid."""

from typing import Any
from uuid import UUID

from proxy.quota.engine import QuotaEngine
from proxy.quota.limits.enforcement import OBSERVE
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import Resources
from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR
from proxy.relay.counters.traffic import Traffic
from proxy.wire.edit import uvarint
from proxy.wire.frames import CUT_THROUGH_BYTES
from tests.support.messages.exchanges import produce, produced
from tests.support.messages.kio_messages import Ports, framed
from tests.support.messages.produce import produce_request
from tests.support.quotas.enforcement import enforcement
from tests.support.stories.playbook import EVERYONE, START, Playbook, RelayDriver, drive, engine

LIMITED = {EVERYONE: {"producer_byte_rate": 1000.0}}


def relays(
    *, principals: tuple[str, ...] = ("ANONYMOUS", "ANONYMOUS"), **settings: Any
) -> tuple[QuotaEngine, list[RelayDriver]]:
    """The drivers of connections under the same quotas, and the quotas."""
    limits = engine(LIMITED, max_throttle_seconds=100.0, **settings)
    return limits, [drive(limits, Ports(), Traffic(), principal=principal) for principal in principals]


def test_a_new_connection_waits_for_the_debt_of_others_of_its_user() -> None:
    _, (first, second) = relays()
    Playbook(first).client(produce(1, size=6000)).to_broker(produce(1, size=6000)).muted(5)
    story = Playbook(second).client(produce(1, size=2000)).to_broker().busy()
    story.at(4.9).to_broker().at(5.01).to_broker(produce(1, size=2000))
    story.broker(produced(1)).at(6.9).muted(7)


def test_a_connection_that_has_paid_its_part_goes_on() -> None:
    _, (first, second) = relays()
    one = Playbook(first).client(produce(1, size=6000)).to_broker(produce(1, size=6000))
    one.broker(produced(1)).at(5).client(produce(2, size=200)).to_broker(produce(2, size=200))
    Playbook(second).at(5).client(produce(1, size=200)).to_broker()


def test_a_request_whose_client_hangs_up_is_not_forwarded_and_costs_nothing() -> None:
    _, (first, second) = relays()
    one = Playbook(first).client(produce(1, size=6000)).to_broker(produce(1, size=6000))
    story = Playbook(second).client(produce(1, size=50_000)).to_broker()
    assert second.relay.status.waits_for_debt
    second.relay.end()
    story.to_broker()
    one.broker(produced(1)).at(5).unmuted()


def test_a_limit_that_is_removed_frees_the_request() -> None:
    limits, (first, second) = relays()
    Playbook(first).client(produce(1, size=600_000)).to_broker(produce(1, size=600_000))
    story = Playbook(second).client(produce(1)).to_broker().at(1).to_broker()
    limits.configure(Limits({}, settings=enforcement()), START + 1.5)
    story.at(2).to_broker(produce(1))


def test_a_shutdown_does_not_forward_it() -> None:
    _, (first, second) = relays()
    Playbook(first).client(produce(1, size=6000)).to_broker(produce(1, size=6000))
    Playbook(second).client(produce(1)).to_broker().drain().to_broker()
    assert second.relay.status.awaited is None


def test_observed_quotas_delay_nothing() -> None:
    _, (first, second) = relays(mode=OBSERVE)
    Playbook(first).client(produce(1, size=6000)).to_broker(produce(1, size=6000))
    Playbook(second).client(produce(1)).to_broker(produce(1))


def test_without_responses_it_waits_as_well() -> None:
    _, (first, second) = relays()
    Playbook(first).client(produce(1, size=6000)).to_broker(produce(1, size=6000))
    story = Playbook(second).client(produce(1, acks=0) + produce(2, acks=0)).to_broker()
    assert not second.relay.status.waits_for_debt, "its client may hang up before that"
    story.at(5.01).to_broker(produce(1, acks=0))


def test_a_request_that_does_not_parse_behind_the_wait_ends_its_connection() -> None:
    """The name of its third topic is longer than what is kept of a request that is cut through."""
    limits = engine({}, resources=Resources({"hot": {"producer.byte.rate": "1000"}}))
    first, second = (drive(limits, Ports(), Traffic()) for _ in range(2))
    ids = {"cold": UUID(int=1), "hot": UUID(int=2)}
    Playbook(first).client(produce_request(1, {"hot": [3000]}, ids, version=9))
    before = produce_request(1, {"cold": [CUT_THROUGH_BYTES], "hot": [10]}, ids, version=9)
    body = before[4:-1].replace(uvarint(3) + uvarint(5) + b"cold", uvarint(4) + uvarint(5) + b"cold")
    request = framed(body + uvarint(2 * CUT_THROUGH_BYTES) + bytes(2 * CUT_THROUGH_BYTES))
    story = Playbook(second).client(request[:CUT_THROUGH_BYTES]).client(request[CUT_THROUGH_BYTES:-100])
    assert second.relay.status.waits_for_debt
    story.fails_at(3.0, CLIENT_PROTOCOL_ERROR, "a field of the request is longer")
