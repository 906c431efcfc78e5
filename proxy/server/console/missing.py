"""Notes on names that no client, topic or broker has: they are mostly mistakes."""

import asyncio
from collections.abc import Sequence
from typing import Final

from proxy.errors import UpstreamUnavailable
from proxy.quota.identity import ANONYMOUS, DEFAULT_IN_YAML
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, ConfigResource
from proxy.server.console.changes import Topics

SECONDS: Final = 1.0
"""The longest time for which the cluster is asked. Without a response there is no note."""


def note_of_user(user: str, identifies_users: bool) -> str:
    """Return a clause if no client can be this user; else an empty text."""
    if identifies_users or user in ("", ANONYMOUS, DEFAULT_IN_YAML):
        return ""
    shown = user if user.isprintable() else repr(user)  # the note stays one line
    return f"no listener has a principal, so every client is {ANONYMOUS}, and none is {shown}"


async def note_of_missing(clusters: Sequence[Topics], resource: ConfigResource) -> str:
    """Return a clause if none of the clusters has the topic or the broker; else an empty text."""
    if resource.name == DEFAULT_RESOURCE:
        return ""
    if resource.type == BROKER:
        known = sorted({node_id for cluster in clusters for node_id in cluster.nodes()})
        if not known or int(resource.name) in known:
            return ""
        return f"the cluster has no broker {resource.name}; its brokers: {', '.join(map(str, known))}"
    return f"the topic {resource.name} does not exist" if await _lack(clusters, resource.name) else ""


async def _lack(clusters: Sequence[Topics], topic: str) -> bool:
    """Whether all clusters say that they do not have the topic."""
    asked = [(cluster, cluster.nodes()) for cluster in clusters]
    try:
        async with asyncio.timeout(SECONDS):
            found = [await cluster.topic_ids(nodes[0], [topic]) for cluster, nodes in asked if nodes]
    except (TimeoutError, UpstreamUnavailable):
        return False
    # A topic with another error is not in the response.
    return bool(found) and all(ids.get(topic, b"") is None for ids in found)
