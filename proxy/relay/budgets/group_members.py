"""GroupMembers: how many bytes of members of groups each client has given to each broker.

A coordinator keeps what a member sends when it joins, such as its subscription, and what the leader assigns,
in memory for as long as the member is in its group. Nothing bounds the number of groups, so JoinGroup
requests on a few hundred connections exhaust a broker's heap. So the proxy adds up the bytes of the members
of each client. A client is a principal, or the address of those without one.

A member counts while a connection that has sent its requests is open and has not joined as another member
since, and then for as long as a coordinator may keep it: it is an orphan. A connection that names it, for
example in a Heartbeat, keeps it in its group, so it counts with this one from then on. If a coordinator has
given a member an id that the proxy does not know, it counts with any connection that names a member of its
group.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.quota.identity import ClientKey
from proxy.wire.group_member import SESSION_SECONDS, GroupMember

MEMBER_BYTES: Final[native] = 1 << 10
"""What a member takes in a coordinator's memory, and in the proxy's, besides the bytes of its requests."""
LONGEST_SECONDS: Final = 6 * 3600.0
"""The longest time for which an orphan counts. A client states the times after which a coordinator removes
its members, and those of some clients have no end.
"""
EXPIRE_SECONDS: Final = 1.0
"""How often the members of a client without room are looked through for those that are over."""
CLIENTS_AT_MOST: Final = 1000
"""If there are more, the members of all are looked through."""

ClientAtBroker = tuple[int, ClientKey]
"""The node id of a broker, and a client."""


@final
class KeptMember:
    """What a coordinator keeps of one member."""

    __slots__ = ("assigned", "connections", "group", "is_orphan", "joined", "key", "named", "until")

    def __init__(self, group: bytes, key: bytes, named: bool) -> None:
        self.group: Final = group
        self.key: Final = key
        self.named: Final = named
        """Whether its requests name it by the member id in its key."""
        self.joined: native = 0
        """The bytes with which it has joined, MEMBER_BYTES included."""
        self.assigned: native = 0
        """Those of its last SyncGroup: the leader's has the assignments of all members."""
        self.connections: native = 0
        """How many open connections it counts with."""
        self.is_orphan = False
        self.until = 0.0
        """When an orphan no longer counts; 0.0: not known yet."""


@final
class ClientMembers:
    """The members of one client at one broker."""

    __slots__ = (
        "_ended",
        "_expire_at",
        "_unnamed",
        "dropped",
        "key",
        "longest",
        "members",
        "orphans",
        "size",
    )

    def __init__(self, key: ClientAtBroker) -> None:
        self.key: Final = key
        self.members: Final[dict[bytes, KeptMember]] = {}
        self.size: native = 0
        """The bytes of all."""
        self.longest = SESSION_SECONDS
        """For how long a coordinator may keep a member of the client: one that rebalances for a long time
        keeps all members of its group.
        """
        self.orphans: native = 0
        self.dropped = False
        """Whether GroupMembers has forgotten it."""
        self._unnamed: Final[dict[bytes, dict[bytes, KeptMember]]] = {}
        """The orphans with unknown ids, by group and key."""
        self._ended: list[KeptMember] = []
        """Those that have become orphans since the last call of note_ended()."""
        self._expire_at = 0.0

    def connect(self, member: KeptMember) -> None:
        """Note that a member counts with another connection."""
        member.connections += 1
        if member.is_orphan:
            self._end_orphan(member)

    def disconnect(self, member: KeptMember) -> None:
        """Note that a member no longer counts with a connection."""
        member.connections -= 1
        if member.connections == 0:
            member.is_orphan = True
            self.orphans += 1
            self._ended.append(member)
            if not member.named:
                self._unnamed.setdefault(member.group, {})[member.key] = member

    def _end_orphan(self, member: KeptMember) -> None:
        member.is_orphan = False
        member.until = 0.0
        self.orphans -= 1
        if not member.named:
            of_group = self._unnamed[member.group]
            del of_group[member.key]
            if not of_group:
                del self._unnamed[member.group]

    def unnamed_of(self, group: bytes) -> list[KeptMember]:
        """The orphans of a group whose ids are unknown."""
        of_group = self._unnamed.get(group)
        return [] if of_group is None else list(of_group.values())

    def note_ended(self, now: float) -> None:
        """Count new orphans for as long as a coordinator may keep them."""
        if self._ended:
            for member in self._ended:
                if member.is_orphan:
                    member.until = now + self.longest
            self._ended = []

    def expire(self, now: float) -> None:
        """Forget the orphans that are over, at most once in EXPIRE_SECONDS."""
        if now < self._expire_at:
            return
        self._expire_at = now + EXPIRE_SECONDS
        for member in list(self.members.values()):
            if 0.0 < member.until <= now:
                self._end_orphan(member)
                del self.members[member.key]
                self.size -= member.joined + member.assigned


@final
class GroupMembers:
    """The members of all clients of a process."""

    __slots__ = ("_clean_at", "_clients", "_last", "most_bytes")

    def __init__(self, most_bytes: native) -> None:
        """`most_bytes`: the bytes of members that a client may give to a broker."""
        self.most_bytes: Final[native] = most_bytes
        self._clients: Final[dict[ClientAtBroker, ClientMembers]] = {}
        self._clean_at = CLIENTS_AT_MOST
        self._last = 0

    @property
    def clients(self) -> int:
        """The number of clients with members, once for each broker, and of some without."""
        return len(self._clients)

    def of(self, key: ClientAtBroker, now: float) -> ClientMembers:
        """Return the members of a client."""
        client = self._clients.get(key)
        if client is None:
            if len(self._clients) >= self._clean_at:
                self._clean(now)
            client = self._clients[key] = ClientMembers(key)
        return client

    def _clean(self, now: float) -> None:
        for client in list(self._clients.values()):
            client.note_ended(now)
            client.expire(now)
            if not client.members:
                client.dropped = True
                del self._clients[client.key]
        self._clean_at = max(2 * len(self._clients), CLIENTS_AT_MOST)

    def key_of(self, request: GroupMember) -> bytes:
        """The key of a request's member among those of its client."""
        group = request.group
        start = len(group).to_bytes(4, "big") + group
        if request.instance_id:
            return start + b"s" + request.instance_id
        if request.member_id:
            return start + b"m" + request.member_id
        self._last += 1
        return start + b"n" + str(self._last).encode()


@final
class ConnectionMembers:
    """The members that count with one connection."""

    __slots__ = ("_all", "_client", "_last", "_members")

    def __init__(self, members: GroupMembers) -> None:
        self._all: Final = members
        self._client: ClientMembers | None = None
        self._members: dict[bytes, KeptMember] = {}
        self._last: dict[bytes, KeptMember] = {}
        """By group, the last new one with a known id."""

    def has_orphans(self, key: ClientAtBroker, now: float) -> bool:
        """Whether the client has orphans, so that remind() has to be called."""
        return self._take_client(key, now).orphans > 0

    def remind(self, key: ClientAtBroker, request: GroupMember, now: float) -> None:
        """Note that a request names a member, and gives a coordinator nothing to keep."""
        client = self._take_client(key, now)
        member = client.members.get(self._all.key_of(request))
        if member is not None:
            self._hold(client, member)
        for other in client.unnamed_of(request.group):
            self._hold(client, other)

    def sync(self, key: ClientAtBroker, request: GroupMember, size: native, now: float) -> bool:
        """Count the `size` bytes of a SyncGroup. Return False if there is no room."""
        self.remind(key, request, now)
        client = self._take_client(key, now)
        member = client.members.get(self._all.key_of(request))
        if member is None:
            return self._count(client, None, request, MEMBER_BYTES, size, now)
        return self._count(client, member, request, member.joined, size, now)

    def join(self, key: ClientAtBroker, request: GroupMember, size: native, keeps: bool, now: float) -> bool:
        """Count the `size` bytes with which a member joins. Return False if there is no room. `keeps`: a
        coordinator also keeps what the member has sent before.
        """
        client = self._take_client(key, now)
        client.longest = max(client.longest, min(request.seconds, LONGEST_SECONDS))
        member = client.members.get(self._all.key_of(request))
        joined: native = size + MEMBER_BYTES
        if member is None:
            return self._count(client, None, request, joined, 0, now)
        if keeps:
            joined = max(joined, member.joined)
        return self._count(client, member, request, joined, member.assigned, now)

    def _take_client(self, key: ClientAtBroker, now: float) -> ClientMembers:
        client = self._client
        if client is None or client.dropped or client.key != key:
            self.end()
            client = self._client = self._all.of(key, now)
        client.note_ended(now)
        return client

    def _count(
        self,
        client: ClientMembers,
        member: KeptMember | None,
        request: GroupMember,
        joined: native,
        assigned: native,
        now: float,
    ) -> bool:
        grows = joined + assigned
        if member is not None:
            self._hold(client, member)
            grows -= member.joined + member.assigned
        if grows > 0 and client.size + grows > self._all.most_bytes:
            client.expire(now)
            if client.size + grows > self._all.most_bytes:
                return False
        if member is None:
            named = not request.joins or (request.member_id != b"" and request.instance_id == b"")
            member = KeptMember(request.group, self._all.key_of(request), named)
            client.members[member.key] = member
            self._hold(client, member)
            if named:
                self._leave_last(client, member)
        client.size += grows
        member.joined = joined
        member.assigned = assigned
        return True

    def _leave_last(self, client: ClientMembers, member: KeptMember) -> None:
        """Have the last member that was new in a group become an orphan: a client that joins anew has left
        it. Requests may name a member with an unknown id, so that one stays.
        """
        last = self._last.get(member.group)
        self._last[member.group] = member
        if last is not None and self._members.pop(last.key, None) is not None:
            client.disconnect(last)

    def _hold(self, client: ClientMembers, member: KeptMember) -> None:
        if member.key not in self._members:
            self._members[member.key] = member
            client.connect(member)

    def end(self) -> None:
        """Note that the connection is over, or counts for another client."""
        client = self._client
        if client is not None:
            self._client = None
            for member in self._members.values():
                client.disconnect(member)
            self._members = {}
            self._last = {}
