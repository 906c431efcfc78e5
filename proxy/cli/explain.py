"""`quota-proxy explain`: which quotas apply, and what each layer says, as on the page of the admin port."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from proxy.cli.admin_port import AdminPort
from proxy.cli.quotas.entity import show_parts
from proxy.cli.quotas.values import show_time, show_value

PAGE: Final = "/api/explain"
Explained = Mapping[str, Any]


def ask(port: AdminPort, parts: Mapping[str, str]) -> tuple[list[Explained], str, Explained | None]:
    """Request the explanation, the note, which may be empty, and what applies to long lists: None for topics
    and brokers. Raises UpstreamUnavailable.
    """
    quotas, note, lists = port.values(f"{PAGE}?{urlencode(parts)}", "quotas", note="", lists=None)
    return quotas, note, lists


def lines(quotas: Sequence[Explained]) -> Iterator[str]:
    """A line for each quota, and an indented line for each entity whose quota may apply."""
    if not quotas:
        yield "no quota can apply"
    for quota in quotas:
        if quota.get("exempt"):
            yield "exempt from all quotas (quotas.exempt)"
            continue
        yield f"{quota['quota']}: {_limit(quota)}"
        if quota.get("callback"):
            yield "  the callback of quotas.callback is asked first"
        for candidate in quota["candidates"]:
            said = ", otherwise ".join(map(_layer, candidate["values"]))
            yield f"  {show_parts(candidate['entity'])}: {said or 'set under another name of this entity'}"


def line_of_lists(lists: Explained) -> str:
    """A line about the requests of a client that wait for others of the client, whatever its quotas."""
    line = (
        f"lists of {lists['from_bytes']} bytes or more: {lists['max_bytes']} bytes at a time at each broker "
        "(limits.max_list_bytes_in_flight)"
    )
    if "waiting" not in lists:
        return line
    return f"{line}; now {lists['in_flight']} in flight, {lists['waiting']} waiting"


def _limit(quota: Explained) -> str:
    limit = quota["limit"]
    if limit is None:
        return "no limit"
    entity = quota["entity"]
    of = "by default" if entity is None else f"of {show_parts(entity)}"
    scope = ", over the cluster" if quota.get("scope") == "cluster" else ""
    observed = ", only observed" if quota["mode"] == "observe" else ""
    return f"{show_value(limit) or 'empty'} {of}{scope}{observed}"


def _layer(layer: Mapping[str, Any]) -> str:
    value = layer.get("value")
    shown = "no limit" if value is None else show_value(value)
    until = f" until {show_time(layer['expires_at_ms'])}" if layer.get("expires_at_ms") else ""
    return f"{shown} {'in the file' if layer['from'] == 'file' else 'by tools'}{until}"
