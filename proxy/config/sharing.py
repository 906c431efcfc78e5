"""The keys of `sharing`, as types; see proxy.config.settings."""

from typing import Annotated

from msgspec import Meta, Struct

from proxy.config.usage import TOPIC_NAME


class SharingSettings(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Several proxies enforce a limit together: see docs/sharing.md."""

    topic: Annotated[str, Meta(pattern=TOPIC_NAME)] = ""
    """Topic by which the proxies share limits, on the cluster of the first client listener that the proxy can
    log in to. The proxy creates it if it is missing. All proxies with the same topic share. Default:
    `__quota_proxy_shares`, or the value of `quotas.store.topic` followed by `_shares` if that is set."""
    instance: Annotated[str, Meta(max_length=249)] = ""
    """Name of this process in the topic, different for each process. Default: the host's name and the process
    id."""
