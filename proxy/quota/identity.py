"""Who a request comes from, whom a quota is for, and which quota wins (KIP-55, KIP-546).

Kafka looks for a quota in this order and takes the first; the bucket is what the requests under it share:

    1  user U + client id C             each (user, client id)
    2  user U + default client id       each (user, client id)
    3  user U                           each user
    4  default user + client id C       each (user, client id)
    5  default user + default client    each (user, client id)
    6  default user                     each user
    7  client id C                      each client id, whoever the user
    8  default client id                each client id, whoever the user

So a bucket carries the user's name where the winning entity has a user part, and the client id where it has a
client part. Which bucket and which limit are two steps: the limit follows from the bucket's own two names,
and an empty client id is no name. Under levels 2 and 5 alone it therefore has no limit, as in Kafka.

Quotas of IP addresses stand apart (KIP-612): the address itself, then the most specific network that it is
in (ours: Kafka has no networks here), then the default ip. Each address has its own bucket at all levels.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from proxy.quota.networks import canonical_address, canonical_network
from proxy.quota.usage import ClientUsage

if TYPE_CHECKING:
    from proxy.quota.measure.buckets import Found

DEFAULT: Final = ""
"""Kafka's default entity: a null name on the wire, `<default>` in YAML. No real name is empty."""
DEFAULT_IN_YAML: Final = "<default>"
USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
ANONYMOUS: Final = "ANONYMOUS"
"""Kafka's principal where nobody has authenticated."""
_SHAPE: Final = "it has user, client-id or both, or ip alone"

Names = tuple[str | None, str | None, str | None]
"""An entity's three parts; a QuotaEntity is one, with the same hash."""


class Identity:
    """Who sends: the principal's name, the client id (empty for null, as in Kafka), the IP address."""

    __slots__ = ("address", "client_id", "found", "principal", "usage")

    def __init__(
        self, principal: str, client_id: str, address: str, usage: ClientUsage | None = None
    ) -> None:
        self.principal: Final = principal
        self.client_id: Final = client_id
        self.address: Final = address
        self.usage: Final = usage
        """Where to count what it uses; None where nobody wants to know."""
        self.found: Found | None = None
        """What Buckets.find() keeps."""


class QuotaEntity(NamedTuple):
    """Whom a quota is for. Each part is a name, DEFAULT, or None where the entity has no such part.

    An `ip` is an address or a network (CIDR) as parse_entity() spells it, and stands alone.
    """

    user: str | None
    client_id: str | None
    ip: str | None = None

    def __str__(self) -> str:
        return ", ".join([f"{part} {name}" for part, name in self.parts().items()])

    def parts(self) -> dict[str, str]:
        """The entity as YAML has it: {user: NAME, client-id: NAME, ip: NAME}, only the parts that it has."""
        parts: dict[str, str] = {}
        if self.user is not None:
            parts[USER] = self.user or DEFAULT_IN_YAML
        if self.client_id is not None:
            parts[CLIENT_ID] = self.client_id or DEFAULT_IN_YAML
        if self.ip is not None:
            parts[IP] = self.ip or DEFAULT_IN_YAML
        return parts


def parse_entity(parts: dict[str, object]) -> QuotaEntity:
    """An entity out of YAML's {user: NAME, client-id: NAME}, either or both, or {ip: NAME}.

    An ip's name is an address or a network in CIDR notation, and comes out in its one canonical spelling.
    Raises ValueError.
    """
    for part, name in parts.items():
        if part != USER and part != CLIENT_ID and part != IP:
            raise ValueError(f"{part!r} is no part of a quota entity; {_SHAPE}")
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
    """The eight entities whose quota may hold for this user and client id, the first that has one wins."""
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
    """The entities that may give a bucket its limit, by the bucket's own names (empty: no part of it)."""
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
