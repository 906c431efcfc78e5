"""The configuration file's part about usage events, as types; see proxy.config.settings."""

from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

from proxy.errors import KeyPath, SettingsError

Text = Annotated[str, Meta(min_length=1)]
TOPIC_NAME: Final = r"^[a-zA-Z0-9._-]{1,249}$"


class UsageTopic(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A topic on the first listener's cluster."""

    topic: Annotated[str, Meta(pattern=TOPIC_NAME)] = "__quota_proxy_usage"
    """Topic for usage events, made where it is missing."""


class UsageFiles(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Files of JSON lines."""

    folder: Text
    """Folder for files of usage events, from the configuration file's own folder on; made where it is
    missing."""
    max_bytes: Annotated[int, Meta(ge=4096)] = 67108864
    """Bytes after which a new file begins."""
    keep: Annotated[int, Meta(ge=1)] = 100
    """Files in the folder of which the oldest are removed; what has not been read by then is gone."""


class UsageSettings(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """What every client has used, as events; none are made where this is left out."""

    interval_seconds: Annotated[int, Meta(ge=1, le=3600)] = 10
    """Seconds that one event adds up, from a multiple of them on."""
    kafka: UsageTopic | None = None
    """Whether events go to a topic."""
    files: UsageFiles | None = None
    """Whether events go to files."""


def checked_usage(usage: UsageSettings | None, folder: Path, store_topic: str) -> UsageSettings | None:
    """The same with absolute paths; those in the file are looked for from its own folder on.

    `store_topic` is the one of quotas.store, empty for none. Raises SettingsError.
    """
    if usage is None:
        return None
    if usage.kafka is None and usage.files is None:
        raise SettingsError("says nowhere to send events; give it kafka, files or both", ("usage",))
    if usage.kafka is not None and usage.kafka.topic == store_topic:
        problem = f"{store_topic} is the topic of quotas.store too; give each its own"
        raise SettingsError(problem, ("usage", "kafka", "topic"))
    if usage.files is None:
        return usage
    return replace(usage, files=replace(usage.files, folder=str(folder / usage.files.folder)))


def check_given(value: Any) -> None:
    """Nothing is where a mapping is expected: nobody leaves the key without meaning something by it.

    `value` is the whole file. Raises SettingsError.
    """
    keys: tuple[KeyPath, ...] = (("usage",), ("usage", "kafka"), ("usage", "files"))
    for key in keys:
        here = value
        for part in key[:-1]:
            here = here.get(part) if isinstance(here, dict) else None
        if isinstance(here, dict) and key[-1] in here and here[key[-1]] is None:
            raise SettingsError("expected a mapping, got nothing; {} takes the defaults", key)
