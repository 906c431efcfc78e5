"""ListenerContext: what the listeners of one process have in common."""

from typing import NamedTuple

from proxy.admin.dispatch import AdminApis
from proxy.config.settings import Settings
from proxy.quota.engines import QuotaEngines
from proxy.relay.budgets.group_members import GroupMembers
from proxy.relay.budgets.large_frames import LargeFrames
from proxy.relay.budgets.list_turns import ListTurns
from proxy.relay.budgets.read_turns import ReadTurns
from proxy.relay.inflight import InFlightRoom
from proxy.server.listener.accept.admission import Admission
from proxy.server.listener.ports.early_ports import EarlyPorts
from proxy.tasks import Tasks


class ListenerContext(NamedTuple):
    """What the listeners of one process have in common."""

    settings: Settings
    engines: QuotaEngines
    admission: Admission
    """Admits clients; connections of brokers are not limited."""
    admin: AdminApis
    large_frames: LargeFrames
    list_turns: ListTurns
    group_members: GroupMembers
    request_turns: ReadTurns
    response_turns: ReadTurns
    in_flight_room: InFlightRoom
    """Room for requests of clients; connections of brokers have room of their own."""
    early: EarlyPorts
    """Ports that listen already."""
    tasks: Tasks
