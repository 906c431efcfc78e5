"""The configuration file's part about usage events, as types; see proxy.settings."""

from typing import Annotated, Final

from msgspec import Meta, Struct

Text = Annotated[str, Meta(min_length=1)]
TOPIC_NAME: Final = r"^[a-zA-Z0-9._-]{1,249}$"


class UsageTopic(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A topic on the first listener's cluster."""

    topic: Annotated[str, Meta(pattern=TOPIC_NAME)] = "__quota_proxy_usage"
    """Topic for usage events, made where it is missing."""


class UsageFiles(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Files of JSON lines."""

    folder: Text
    """Folder for files of usage events, made where it is missing."""
    max_bytes: Annotated[int, Meta(ge=4096)] = 67108864
    """Bytes after which a new file begins."""
    keep: Annotated[int, Meta(ge=1)] = 100
    """Files in the folder of which the oldest are removed; what has not been read by then is gone."""


class Usage(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """What every client has used, as events; none are made where this is left out."""

    interval_seconds: Annotated[int, Meta(ge=1, le=3600)] = 10
    """Seconds that one event adds up, from a multiple of them on."""
    kafka: UsageTopic | None = None
    """Whether events go to a topic."""
    files: UsageFiles | None = None
    """Whether events go to files."""
