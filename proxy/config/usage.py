"""The keys of `usage`, as types; see proxy.config.settings."""

from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

from proxy.errors import KeyPath, SettingsError
from proxy.quota.limits.topic_limits import USAGE_TOPIC
from proxy.security.settings import Text
from proxy.wire.long_names import MAX_TOPIC_NAME

TOPIC_NAME: Final = rf"^[a-zA-Z0-9._-]{{1,{MAX_TOPIC_NAME}}}$"


class UsageTopic(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A topic on the cluster of the first client listener."""

    topic: Annotated[str, Meta(pattern=TOPIC_NAME)] = USAGE_TOPIC
    """Topic for usage events. The proxy creates it if it is missing."""


class UsageFiles(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Files of JSON lines."""

    folder: Text
    """Folder for the files of usage events, relative to the folder of the configuration file. The proxy
    creates it if it is missing."""
    max_bytes: Annotated[int, Meta(ge=4096)] = 67108864
    """Maximum size of a file in bytes; then the next one is started."""
    keep: Annotated[int, Meta(ge=1)] = 100
    """Number of files to keep. The oldest are removed, whether they have been read or not."""


class UsageSettings(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Usage events: what each client used in each interval. Without this key the proxy emits none."""

    interval_seconds: Annotated[int, Meta(ge=1, le=3600)] = 10
    """Length in seconds of the interval that an event covers. Intervals start at multiples of it."""
    kafka: UsageTopic | None = None
    """The topic for the events. Without this key, the proxy writes no events to a topic."""
    files: UsageFiles | None = None
    """The files for the events. Without this key, the proxy writes no events to files."""


def checked_usage(usage: UsageSettings | None, folder: Path, store_topic: str) -> UsageSettings | None:
    """The settings with paths resolved against `folder`, that of the configuration file.

    `store_topic` is the topic of quotas.store, or empty. Raises SettingsError.
    """
    if usage is None:
        return None
    if usage.kafka is None and usage.files is None:
        raise SettingsError("expected kafka, files, or both", ("usage",))
    if usage.kafka is not None and usage.kafka.topic == store_topic:
        problem = f"quotas.store uses the topic {store_topic} already; choose another"
        raise SettingsError(problem, ("usage", "kafka", "topic"))
    if usage.files is None:
        return usage
    return replace(usage, files=replace(usage.files, folder=str(folder / usage.files.folder)))


def check_given(value: Any) -> None:
    """Reject an empty key where a mapping is expected: it is almost certainly a mistake.

    `value` is the content of the whole file. Raises SettingsError.
    """
    keys: tuple[KeyPath, ...] = (("usage",), ("usage", "kafka"), ("usage", "files"))
    for key in keys:
        here = value
        for part in key[:-1]:
            here = here.get(part) if isinstance(here, dict) else None
        if isinstance(here, dict) and key[-1] in here and here[key[-1]] is None:
            raise SettingsError("expected a mapping, got nothing; write {} for the defaults", key)
