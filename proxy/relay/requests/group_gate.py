"""GroupGate: rejects requests of one connection that give a broker too many bytes of members of groups."""

from typing import Final, final

from proxy.quota.identity import Identity, client_key
from proxy.relay.budgets.group_members import ConnectionMembers, GroupMembers
from proxy.wire.api_keys import JOIN_GROUP, SYNC_GROUP, api_name
from proxy.wire.apis.api import RequestHeader
from proxy.wire.errors import Malformed
from proxy.wire.frames import Frame
from proxy.wire.group_member import REMINDERS, read_group_member


@final
class GroupGate:
    """The gate of one connection to a broker."""

    __slots__ = ("_members", "_most_bytes", "_node_id")

    def __init__(self, members: GroupMembers, node_id: int) -> None:
        self._members: Final = ConnectionMembers(members)
        self._most_bytes: Final = members.most_bytes
        self._node_id: Final = node_id

    def take(self, frame: Frame, header: RequestHeader, body_at: int, who: Identity, now: float) -> None:
        """Count a request of MEMBER_REQUESTS. Raises Malformed if the client would have given the broker too
        much.
        """
        key = (self._node_id, client_key(who))
        api_key = header.api_key
        if api_key in REMINDERS and not self._members.has_orphans(key, now):
            return
        member = read_group_member(frame.pieces, body_at, api_key, header.api_version)
        if member is None:
            return
        if api_key in REMINDERS:
            self._members.remind(key, member, now)
            return
        if api_key == SYNC_GROUP:
            has_room = self._members.sync(key, member, frame.size, now)
        else:
            size = frame.size if member.joins else member.head_size
            keeps = api_key != JOIN_GROUP or not member.joins
            has_room = self._members.join(key, member, size, keeps, now)
        if not has_room:
            raise Malformed(
                f"{api_name(api_key)} of {frame.size} bytes: the members of the client's groups would have "
                f"more than {self._most_bytes} bytes at the broker (limits.max_group_member_bytes)"
            )

    def end(self) -> None:
        """Let the members wait for another connection, because this one is over."""
        self._members.end()
