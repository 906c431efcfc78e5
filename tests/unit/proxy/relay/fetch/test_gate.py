"""What becomes of a fetch; tests/relay has the stories in which one waits."""

from kio.schema.errors import ErrorCode

from proxy.quota.identity import Identity
from proxy.relay.budgets.id_budget import IdBudget
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.fetch.gate import FetchGate
from proxy.relay.fetch.plan_turns import PlanTurns
from proxy.relay.inflight import InFlight
from proxy.relay.output import RelayOutput
from proxy.wire.api_keys import FETCH
from proxy.wire.apis.api import read_request_header
from proxy.wire.apis.registry import WITHOUT_INTERCEPTED
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView
from tests.support.messages.kio_messages import read_frame, response_type
from tests.support.present import present
from tests.support.stories.fetching import COLD, HOT, Story, fetch
from tests.support.stories.playbook import START

VERSION = 12
WHO = Identity("ANONYMOUS", "", "127.0.0.1")


class Asking:
    """A client whose fetches name partitions that `story` omits."""

    def __init__(self) -> None:
        self.story = Story()
        self.traffic = Traffic()
        self.output = RelayOutput()
        self.in_flight = InFlight(self.story.engine, self.traffic, self.output)
        self.gate = FetchGate(self.story.engine, self.in_flight, IdBudget(self.story.names), PlanTurns())

    def forwards(self, partitions: dict[tuple[str, int], int], session: tuple[int, int] = (0, -1)) -> bool:
        data = fetch(1, partitions, VERSION, session=session)
        reader = Reader([data], LENGTH_SIZE)
        header = read_request_header(reader)
        reader.skip_tags()
        client = new_client(WHO, header.raw_client_id, self.traffic, -1)
        view = RequestView(FETCH, VERSION, 1, client.client_id, len(data) - LENGTH_SIZE, flexible=True)
        present(WITHOUT_INTERCEPTED.read[FETCH]).read_request(reader, view)
        exchange = Exchange(1, client, api_key=FETCH, api=WITHOUT_INTERCEPTED.read[FETCH], request=view)
        return self.gate.forwards(Frame([data], len(data), True), exchange, view, START)


def test_fetches_are_read_where_a_quota_may_hold_them() -> None:
    asking = Asking()
    assert asking.gate.reads
    asking.story.quota.omits = False
    asking.story.new_limits()
    assert not asking.gate.reads


def test_what_no_quota_is_about_passes() -> None:
    asking = Asking()
    assert asking.forwards({(COLD, 0): 1})
    assert (asking.gate.waiting, asking.gate.wake_at, asking.gate.wake(START)) == (False, 0.0, None)


def test_one_that_cannot_go_on_is_answered() -> None:
    asking = Asking()
    assert not asking.forwards({(HOT, 0): 1}, session=(77, 3))
    response = read_frame(response_type(FETCH, VERSION), b"".join(asking.output.to_client))
    assert response.error_code == ErrorCode.invalid_fetch_session_epoch
    assert (asking.gate.waiting, asking.in_flight.empty) == (False, True)
