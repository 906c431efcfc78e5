"""Names and cost centers of tenants, read from a YAML file.

tenants: [{user: alice, client_id: billing, name: Billing team, cost_center: "4711"}]
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, Struct

from pipeline.errors import InputError
from pipeline.inputs.documents import convert, read_yaml

MOST: Final = 100_000
"""Entries of a file."""


class Tenant(Struct, forbid_unknown_fields=True, frozen=True):
    """An entry of the file: which clients it is for, and what an invoice says about them.

    A key that is absent matches every name. `user` and `client_id` match one name exactly, the keys with
    `_prefix` match names that begin so. No character has a special meaning.
    """

    name: str = ""
    cost_center: str = ""
    cluster: str | None = None
    user: str | None = None
    user_prefix: Annotated[str, Meta(min_length=1)] | None = None
    client_id: str | None = None
    client_id_prefix: Annotated[str, Meta(min_length=1)] | None = None

    def matches(self, cluster: str, user: str, client_id: str) -> bool:
        """Whether the entry is for these clients."""
        return (
            self.cluster in (None, cluster)
            and self.user in (None, user)
            and self.client_id in (None, client_id)
            and user.startswith(self.user_prefix or "")
            and client_id.startswith(self.client_id_prefix or "")
        )


class _File(Struct, forbid_unknown_fields=True, frozen=True):
    tenants: Annotated[list[Tenant], Meta(max_length=MOST)]


NOBODY: Final = Tenant()


@dataclass(slots=True)
class Directory:
    """The entries of a file, in its order: the first that matches a client is the client's."""

    entries: Sequence[Tenant] = ()
    _exact: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    _others: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Most files name each client, and a report may have as many clients.
        for place, entry in enumerate(self.entries):
            if entry.user is None or entry.client_id is None:
                self._others.append(place)
            else:
                self._exact.setdefault((entry.user, entry.client_id), []).append(place)

    def find(self, cluster: str, user: str, client_id: str) -> Tenant:
        """Return the entry of these clients; NOBODY if there is none."""
        places = (*self._exact.get((user, client_id), ()), *self._others)
        found = [place for place in places if self.entries[place].matches(cluster, user, client_id)]
        return self.entries[min(found)] if found else NOBODY


def read_tenants(path: Path) -> Directory:
    """Read the file. Raises InputError if it is invalid."""
    entries = convert(read_yaml(path), _File, path).tenants
    for place, entry in enumerate(entries):
        for key in ("user", "client_id"):
            if getattr(entry, key) is not None and getattr(entry, f"{key}_prefix") is not None:
                raise InputError(
                    f"{path}: tenants[{place}]: expected {key} or {key}_prefix, got both; remove one of them"
                )
        if not entry.name and not entry.cost_center:
            raise InputError(f"{path}: tenants[{place}]: expected a name, a cost_center or both")
    return Directory(entries)
