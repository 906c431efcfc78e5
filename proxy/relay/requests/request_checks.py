"""RequestChecks: rejects requests of one connection that would occupy a broker, or exhaust its memory."""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.identity import Identity
from proxy.relay.requests.group_gate import GroupGate
from proxy.relay.settings import RelaySettings
from proxy.wire.apis.api import RequestHeader
from proxy.wire.frames import Frame
from proxy.wire.group_member import MEMBER_REQUESTS
from proxy.wire.keyed.checks import check_names


@final
class RequestChecks:
    """The checks of one connection."""

    __slots__ = ("_group_gate", "_group_members", "_max_topics_by_id", "_node_id", "_of_client")

    def __init__(self, settings: RelaySettings, node_id: int) -> None:
        self._of_client: Final = not settings.between_brokers
        """Followers may fetch any number of topics, whatever their names."""
        self._max_topics_by_id: Final = settings.max_topics_by_id
        self._group_members: Final = settings.group_members
        self._group_gate: GroupGate | None = None
        """None before the first request of a member of a group."""
        self._node_id: Final = node_id

    def check(self, frame: Frame, header: RequestHeader, body_at: int, who: Identity, now: float) -> native:
        """Check a request other than Produce and Fetch; return the number of names. Raises Malformed."""
        read = self.check_names(frame, header, body_at)
        if header.api_key in MEMBER_REQUESTS and self._group_members is not None:
            if self._group_gate is None:
                self._group_gate = GroupGate(self._group_members, self._node_id)
            self._group_gate.take(frame, header, body_at, who, now)
        return read

    def check_names(self, frame: Frame, header: RequestHeader, body_at: int) -> native:
        """Check the names in a request; return the number of names. Raises Malformed."""
        if not self._of_client:
            return 0
        return check_names(
            frame.pieces,
            body_at,
            header.api_key,
            header.api_version,
            frame.size,
            frame.complete,
            self._max_topics_by_id,
        )

    def end(self) -> None:
        """End the gate of members, because the connection is over."""
        if self._group_gate is not None:
            self._group_gate.end()
