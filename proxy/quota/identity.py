"""The sender of a request, the entity of a quota, and which quota applies to a sender (KIP-55, KIP-546).

Kafka applies the first quota that it finds in this order. The right column says which clients share a bucket:

    1  user U + client id C             each (user, client id)
    2  user U + default client id       each (user, client id)
    3  user U                           each user
    4  default user + client id C       each (user, client id)
    5  default user + default client    each (user, client id)
    6  default user                     each user
    7  client id C                      each client id, whoever the user
    8  default client id                each client id, whoever the user

The bucket carries the user's name if the entity has a user part, and the client id if it has a client part.
The limit is then looked up by the names that the bucket carries, in which an empty client id counts as no
client part. A client with an empty client id therefore has no limit under levels 2 and 5 alone, as in Kafka
(DefaultQuotaCallback in ClientQuotaManager).

Quotas of IP addresses are separate (KIP-612). The first that exists applies: the address's own, that of the
most specific network around it (an extension: Kafka has no networks here), the default ip's. Each address has
its own bucket, whichever of these applies.
"""

from typing import Final, NamedTuple

from proxy.quota.networks import canonical_address, canonical_network
from proxy.quota.usage import ClientUsage

DEFAULT: Final = ""
"""Kafka's default entity: a null name on the wire, `<default>` in YAML. No real name is empty."""
DEFAULT_IN_YAML: Final = "<default>"
USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
CLIENT_TYPES: Final = (USER, CLIENT_ID, IP)
"""Kafka's entity types of client quotas, in the order of a QuotaEntity's parts."""
ANONYMOUS: Final = "ANONYMOUS"
"""Kafka's principal of a client that has not authenticated."""
_SHAPE: Final = "it has user, client-id or both, or ip alone"

Names = tuple[str | None, str | None, str | None]
"""The three parts of an entity. A QuotaEntity is such a tuple, with the same hash."""


class CachedLookup:
    """A look-up's result that its owner keeps on an Identity, so that the next one needs no dict.

    Each owner subclasses it. The entries of one Identity form a linked list: it has at most one per quota
    key, and mostly one or two.
    """

    __slots__ = ("next", "owner")

    def __init__(self, owner: object, following: "CachedLookup | None") -> None:
        self.owner: Final = owner
        """The owner, which finds its entry by identity (`is`)."""
        self.next: Final = following


class Identity:
    """The sender of a request: the principal's name, the client id (empty for null, as in Kafka), and the IP
    address. There is one per connection and client id.
    """

    __slots__ = ("address", "cached", "client_id", "principal", "usage")

    def __init__(
        self, principal: str, client_id: str, address: str, usage: ClientUsage | None = None
    ) -> None:
        self.principal: Final = principal
        self.client_id: Final = client_id
        self.address: Final = address
        self.usage: Final = usage
        """Counts what the client uses; None if no usage is counted."""
        self.cached: CachedLookup | None = None
        """The first entry of the list of look-ups."""


ClientKey = tuple[str, str]
"""A principal, and the address of those without one."""


def client_key(who: Identity) -> ClientKey:
    """Return the client that shares what all clients use, whatever its connections and client ids."""
    return (who.principal, who.address if who.principal == ANONYMOUS else "")


class QuotaEntity(NamedTuple):
    """The entity that a quota is for. Each part is a name, DEFAULT, or None if the entity has no such part.

    An `ip` is an address or a network (CIDR) in the spelling of parse_entity(), and is the only part.
    """

    user: str | None
    client_id: str | None
    ip: str | None = None

    def __str__(self) -> str:
        return ", ".join([f"{part} {name}" for part, name in self.parts().items()])

    def parts(self) -> dict[str, str]:
        """The entity as in YAML: {user: NAME, client-id: NAME, ip: NAME}, with only the parts that it has."""
        parts: dict[str, str] = {}
        if self.user is not None:
            parts[USER] = self.user or DEFAULT_IN_YAML
        if self.client_id is not None:
            parts[CLIENT_ID] = self.client_id or DEFAULT_IN_YAML
        if self.ip is not None:
            parts[IP] = self.ip or DEFAULT_IN_YAML
        return parts


def parse_entity(parts: dict[str, object]) -> QuotaEntity:
    """Parse an entity from YAML's {user: NAME, client-id: NAME}, either or both, or {ip: NAME}.

    An ip's name is an address or a network in CIDR notation; the entity has its canonical spelling. Raises
    ValueError.
    """
    for part, name in parts.items():
        if part != USER and part != CLIENT_ID and part != IP:
            raise ValueError(f"{part!r} is not part of a quota entity; {_SHAPE}")
        if not isinstance(name, str) or not name:
            raise ValueError(
                f"{part} is {name!r}; it takes a name, or {DEFAULT_IN_YAML} for Kafka's default entity"
            )
    if not parts:
        raise ValueError(f"the entity is empty; {_SHAPE}")
    if IP not in parts:
        return QuotaEntity(_name(parts.get(USER)), _name(parts.get(CLIENT_ID)))
    if len(parts) > 1:
        raise ValueError(f"the entity has ip and {' and '.join(sorted(parts.keys() - {IP}))}; {_SHAPE}")
    return QuotaEntity(None, None, _ip(str(parts[IP])))


def _name(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    return DEFAULT if value == DEFAULT_IN_YAML else value


def _ip(name: str) -> str:
    if name == DEFAULT_IN_YAML:
        return DEFAULT
    try:
        return canonical_network(name) if "/" in name else canonical_address(name)
    except ValueError as error:
        raise ValueError(
            f"ip: {error}; it takes an address, a network such as 10.0.0.0/8, "
            f"or {DEFAULT_IN_YAML} for Kafka's default entity"
        ) from error


def precedence(user: str, client_id: str) -> list[Names]:
    """The entities whose quota may apply to this user and client id; the first that has one does."""
    return [
        (user, client_id, None),
        (user, DEFAULT, None),
        (user, None, None),
        (DEFAULT, client_id, None),
        (DEFAULT, DEFAULT, None),
        (DEFAULT, None, None),
        (None, client_id, None),
        (None, DEFAULT, None),
    ]


def limit_precedence(user: str, client_id: str) -> list[Names]:
    """The entities that may give a bucket its limit, by the names that the bucket carries (empty: none)."""
    if user and client_id:
        return [
            (user, client_id, None),
            (user, DEFAULT, None),
            (DEFAULT, client_id, None),
            (DEFAULT, DEFAULT, None),
        ]
    if user:
        return [(user, None, None), (DEFAULT, None, None)]
    if client_id:
        return [(None, client_id, None), (None, DEFAULT, None)]
    return []
