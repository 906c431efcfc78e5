"""The labels of tenants and buckets in the report. Different tenants have different labels."""

import re
from typing import Final

_SEPARATOR: Final = " / "
_ANY_USER: Final = "any user"
_ANY_CLIENT_ID: Final = "any client id"
_NO_USER: Final = "no user"
_NO_CLIENT_ID: Final = "no client id"
_NO_CLUSTER: Final = "no cluster"
_NONE: Final = "none"
_RESERVED: Final = frozenset([_ANY_USER, _ANY_CLIENT_ID, _NO_USER, _NO_CLIENT_ID, _NO_CLUSTER, _NONE])
_AMBIGUOUS: Final = re.compile(r'^["\s]|\s$|\s\s|(^|\s)/|/(\s|$)')
"""Names that need quotation marks: their slash or quotation mark could belong to the label, or a page does
not show their spaces."""


def tenant_label(user: str, client_id: str, cluster: str | None = None) -> str:
    """Return `user / client id`, or `cluster / user / client id`. An empty name stands for itself."""
    names = [_spell(user, _NO_USER), _spell(client_id, _NO_CLIENT_ID)]
    return _join(names, cluster)


def bucket_label(user: str, client_id: str, cluster: str | None = None) -> str:
    """Return the label of a bucket, of which all users or client ids share an empty part."""
    names = [_spell(user, _ANY_USER), _spell(client_id, _ANY_CLIENT_ID)]
    return _join(names, cluster)


def name_alone(name: str) -> str:
    """Return a name that stands alone, such as a user on an invoice."""
    return _spell(name, _NONE)


def _join(names: list[str], cluster: str | None) -> str:
    return _SEPARATOR.join(names if cluster is None else [_spell(cluster, _NO_CLUSTER), *names])


def _spell(name: str, if_empty: str) -> str:
    """Return the name, in quotes and with escapes if its label could be that of another name."""
    if not name:
        return if_empty
    if name.isprintable() and name not in _RESERVED and not _AMBIGUOUS.search(name):
        return name
    return '"' + "".join(map(_escaped, name)) + '"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    if letter == " " or letter.isprintable():
        return letter
    return letter.encode("unicode_escape").decode()
