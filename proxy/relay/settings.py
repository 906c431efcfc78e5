"""RelaySettings: the settings that the relays of one listener have in common."""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.relay.budgets.group_members import GroupMembers
from proxy.relay.budgets.large_frames import LargeFrames
from proxy.relay.budgets.list_turns import LIST_BYTES, ListTurns
from proxy.relay.budgets.read_turns import ReadTurns
from proxy.relay.counters.broker_errors import BrokerErrors
from proxy.relay.counters.traffic import Traffic
from proxy.relay.fetch.plan_turns import PlanTurns
from proxy.relay.inflight import InFlightRoom
from proxy.relay.login.authentication import Login
from proxy.relay.service_clock import ServiceClock
from proxy.wire.apis.registry import WITHOUT_INTERCEPTED, ApiTable
from proxy.wire.cursor import Cursor
from proxy.wire.keyed.topic_names import UNNAMED_AT_MOST
from proxy.wire.protected_topics import ProtectedTopics
from proxy.wire.reader import MAX_LENGTH, NOTHING, Reader
from proxy.wire.spare_items import SpareTable
from proxy.wire.topic_names import TopicNames

NO_INTERCEPTED_APIS: Final[frozenset[int]] = frozenset()


@final
class RelaySettings:
    """Created once. The relays only read it; they change what they share: memory, items, names, the
    reader, the cursor and the service clock.
    """

    def __init__(
        self,
        *,
        max_frame_bytes: int,
        max_list_bytes: int = MAX_LENGTH,
        max_topics_by_id: int = UNNAMED_AT_MOST,
        apis: ApiTable = WITHOUT_INTERCEPTED,
        intercepted_api_keys: frozenset[int] = NO_INTERCEPTED_APIS,
        between_brokers: bool = False,
        login: Login | None = None,
        protected: ProtectedTopics | None = None,
        topic_names: TopicNames | None = None,
        large_frames: LargeFrames | None = None,
        list_turns: ListTurns | None = None,
        group_members: GroupMembers | None = None,
        plan_turns: PlanTurns | None = None,
        request_turns: ReadTurns | None = None,
        response_turns: ReadTurns | None = None,
        in_flight_room: InFlightRoom | None = None,
    ) -> None:
        self.max_frame_bytes: Final = max_frame_bytes
        """The maximum size of a request in bytes (socket.request.max.bytes)."""
        self.max_list_bytes: Final = max_list_bytes
        """The maximum size of a request that lists partitions, topics or groups."""
        self.list_from: Final[native] = min(LIST_BYTES, max_list_bytes + 1)
        """A request of this size or more may be a list that waits for its turn, or that is too large."""
        self.max_topics_by_id: Final = max_topics_by_id
        """The most topics that a request may name by id."""
        self.apis: Final = apis
        """The APIs that are read, and those that limit what ApiVersions offers."""
        self.intercepted_api_keys: Final = intercepted_api_keys
        """The APIs that the proxy answers; see RelayOutput.intercepted."""
        self.between_brokers: Final = between_brokers
        """Whether the clients are brokers. Their fetches are those of followers, and no version
        is rejected.
        """
        self.login: Final = login
        """How logins name clients; None if they do not."""
        self.protected: Final = protected
        """Topics to which clients may not write; None if there are none."""
        self.topic_names: Final = TopicNames() if topic_names is None else topic_names
        self.large_frames: Final = LargeFrames() if large_frames is None else large_frames
        """The memory that connections share."""
        self.list_turns: Final = list_turns
        """The turns in which large lists go to brokers; None if they do not wait."""
        self.group_members: Final = group_members
        """The bytes of members of groups that clients have given to brokers; None if they are not counted."""
        self.plan_turns: Final = PlanTurns() if plan_turns is None else plan_turns
        """The turns in which the fetches of consumers are planned."""
        self.request_turns: Final = ReadTurns(None) if request_turns is None else request_turns
        """How many requests are read at once."""
        self.response_turns: Final = ReadTurns(None) if response_turns is None else response_turns
        """How many responses are read at once."""
        self.spare_items: Final = SpareTable()
        """The items of messages that are done with, for the next ones."""
        self.reader: Final = Reader(NOTHING)
        """Reads every message that is there as a whole, one after the other."""
        self.cursor: Final = Cursor()
        """How far that reading has come: nothing looks at it when the message has been read."""
        self.service_clock: Final = ServiceClock()
        """When brokers work on requests."""
        self.in_flight_room: Final = InFlightRoom() if in_flight_room is None else in_flight_room
        """The room for requests in flight that connections share."""
        self._broker_errors: Final[dict[int, BrokerErrors]] = {}

    def broker_errors(self, traffic: Traffic, node_id: int) -> BrokerErrors:
        """Return the counter that the connections to a broker share; `traffic` is the listener's."""
        errors = self._broker_errors.get(node_id)
        if errors is None:
            errors = self._broker_errors[node_id] = BrokerErrors(traffic, node_id)
        return errors
