"""ListGate: for how long a list has its turn; tests/relay/connection/test_list_turns.py has the stories."""

import pytest

from proxy.quota.identity import Identity
from proxy.relay.budgets.list_turns import LONGEST_SECONDS, ListTurns, work_seconds
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.inflight import InFlight
from proxy.relay.output import RelayOutput
from proxy.relay.requests.list_gate import ListGate
from proxy.wire.api_keys import FETCH, METADATA, SHARE_FETCH
from tests.support.stories.playbook import engine

SIZE = 50_000
TRAFFIC = Traffic()
WHO = new_client(Identity("alice", "", "10.0.0.1"), b"c", TRAFFIC, 1)


class Side:
    """A connection's gate, and its requests in flight."""

    def __init__(self, turns: ListTurns) -> None:
        self.in_flight = InFlight(engine({}), TRAFFIC, RelayOutput())
        self.gate = ListGate(turns, self.in_flight, 1)

    def wait(self, api_key: int = METADATA, now: float = 0.0) -> float:
        return self.gate.wait_seconds(api_key, SIZE, WHO, now)


@pytest.fixture
def sides() -> tuple[Side, Side]:
    turns = ListTurns(1)
    return Side(turns), Side(turns)


@pytest.mark.parametrize(
    ("api_key", "seconds"),
    [(METADATA, LONGEST_SECONDS), (FETCH, work_seconds(SIZE)), (SHARE_FETCH, work_seconds(SIZE))],
)
def test_what_may_wait_for_records_has_a_short_turn(
    sides: tuple[Side, Side], api_key: int, seconds: float
) -> None:
    one, other = sides
    assert one.wait(api_key) == 0.0
    assert other.wait() == pytest.approx(seconds)
    assert other.gate.asks_at == pytest.approx(seconds)
    assert other.wait(now=seconds) == 0.0


def test_a_request_in_flight_has_its_turn_until_its_response(sides: tuple[Side, Side]) -> None:
    one, other = sides
    assert one.wait() == 0.0
    one.in_flight.add(Exchange(1, WHO))
    one.gate.read(0, waits=False)
    one.in_flight.add(Exchange(2, WHO))
    one.gate.read(1, waits=False)  # no list
    assert other.wait() > 0.0
    one.in_flight.take_response(1)
    assert other.wait() == 0.0


@pytest.mark.parametrize("waits", [False, True])
def test_a_request_that_is_not_in_flight_has_no_turn_unless_it_waits(
    sides: tuple[Side, Side], waits: bool
) -> None:
    one, other = sides
    assert one.wait() == 0.0
    one.gate.read(0, waits)
    assert (other.wait() > 0.0) is waits


def test_who_gives_up_or_ends_leaves_the_line(sides: tuple[Side, Side]) -> None:
    one, other = sides
    assert one.wait() == 0.0
    one.gate.read(0, waits=False)
    assert other.wait() == 0.0
    assert one.wait() > 0.0
    assert one.gate.waiting
    one.gate.give_up()
    assert not one.gate.waiting
    one.gate.end()
    other.gate.end()
    assert one.wait(now=work_seconds(SIZE)) == 0.0
