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
"""

from typing import Final, final

DEFAULT: Final = ""
"""Kafka's default entity: a null name on the wire, `<default>` in YAML. No real name is empty."""
DEFAULT_IN_YAML: Final = "<default>"
USER: Final = "user"
CLIENT_ID: Final = "client-id"
ANONYMOUS: Final = "ANONYMOUS"
"""Kafka's principal where nobody has authenticated."""


@final
class Identity:
    """Who sends: the principal's name, the client id (empty for null, as in Kafka), the IP address."""

    __slots__ = ("address", "client_id", "principal")

    def __init__(self, principal: str, client_id: str, address: str) -> None:
        self.principal: Final = principal
        self.client_id: Final = client_id
        self.address: Final = address


@final
class QuotaEntity:
    """Whom a quota is for. Each part is a name, DEFAULT, or None where the entity has no such part."""

    __slots__ = ("_hash", "client_id", "user")

    def __init__(self, user: str | None, client_id: str | None) -> None:
        self.user: Final = user
        self.client_id: Final = client_id
        self._hash: Final = hash((user, client_id))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QuotaEntity):
            return NotImplemented
        return self.user == other.user and self.client_id == other.client_id

    def __repr__(self) -> str:
        return f"QuotaEntity({self.user!r}, {self.client_id!r})"

    def __str__(self) -> str:
        return ", ".join([f"{part} {name}" for part, name in self.parts().items()])

    def parts(self) -> dict[str, str]:
        """The entity as YAML has it: {user: NAME, client-id: NAME}, only the parts that it has."""
        parts: dict[str, str] = {}
        if self.user is not None:
            parts[USER] = self.user or DEFAULT_IN_YAML
        if self.client_id is not None:
            parts[CLIENT_ID] = self.client_id or DEFAULT_IN_YAML
        return parts


def parse_entity(parts: dict[str, object]) -> QuotaEntity:
    """An entity out of YAML's {user: NAME, client-id: NAME}, either or both. Raises ValueError."""
    for part, name in parts.items():
        if part != USER and part != CLIENT_ID:
            raise ValueError(f"{part!r} is no part of a quota entity; it has user, client-id or both")
        if not isinstance(name, str) or not name:
            raise ValueError(
                f"{part} is {name!r}; it takes a name, or {DEFAULT_IN_YAML} for Kafka's default entity"
            )
    if not parts:
        raise ValueError("the entity is empty; it has user, client-id or both")
    return QuotaEntity(_name(parts.get(USER)), _name(parts.get(CLIENT_ID)))


def _name(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    return DEFAULT if value == DEFAULT_IN_YAML else value


def precedence(user: str, client_id: str) -> list[QuotaEntity]:
    """The eight entities whose quota may hold for this user and client id, the first that has one wins."""
    return [
        QuotaEntity(user, client_id),
        QuotaEntity(user, DEFAULT),
        QuotaEntity(user, None),
        QuotaEntity(DEFAULT, client_id),
        QuotaEntity(DEFAULT, DEFAULT),
        QuotaEntity(DEFAULT, None),
        QuotaEntity(None, client_id),
        QuotaEntity(None, DEFAULT),
    ]


def limit_precedence(user: str, client_id: str) -> list[QuotaEntity]:
    """The entities that may give a bucket its limit, by the bucket's own names (empty: no part of it)."""
    if user and client_id:
        return [
            QuotaEntity(user, client_id),
            QuotaEntity(user, DEFAULT),
            QuotaEntity(DEFAULT, client_id),
            QuotaEntity(DEFAULT, DEFAULT),
        ]
    if user:
        return [QuotaEntity(user, None), QuotaEntity(DEFAULT, None)]
    if client_id:
        return [QuotaEntity(None, client_id), QuotaEntity(None, DEFAULT)]
    return []
