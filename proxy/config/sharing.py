"""The keys of `sharing`, as types; see proxy.config.settings."""

from typing import Annotated

from msgspec import Meta, Struct

from proxy.config.usage import TOPIC_NAME
from proxy.quota.limits.topic_limits import SHARES_TOPIC


class SharingSettings(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Several proxies enforce a limit together: see docs/sharing.md."""

    topic: Annotated[str, Meta(pattern=TOPIC_NAME)] = SHARES_TOPIC
    """Topic by which the proxies share limits, on the cluster of the first client listener that the proxy can
    log in to. The proxy creates it if it is missing. All proxies with the same topic share. `sharing: on`
    instead of this mapping selects the defaults; `sharing: off` has the effect of no such key."""
    instance: Annotated[str, Meta(max_length=249)] = ""
    """Name of this process in the topic, different for each process. Default: the host's name and the process
    id."""
