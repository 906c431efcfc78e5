"""What messages about configs have in common: a resource by type and name, and its result."""

from typing import Final

from proxy.admin.messages.fields import write_message, write_tags
from proxy.wire.edit import i16, i32, string
from proxy.wire.errors import Malformed
from proxy.wire.reader import Reader

ResourceKey = tuple[int, str]
"""Type and name of a resource."""
EXPIRES_AT_MS: Final = "expires.at.ms"
"""Not a config. If it is set, the other quotas of the resource in the request hold until then; if it is
deleted, the resource's temporary values end.
"""
BACK_TO_FILE: Final = "back.to.file"
"""Not a config. If it is set, a deletion in the request drops what tools have set or deleted, so that the
file's value takes effect again; without deletions, this concerns all quotas of the resource.
"""
LAYERS: Final = "quota.layers"
"""Not a config. DescribeConfigs of the topic `<default>` returns it only if the request names it: the quotas
of all topics and brokers with their sources, as JSON (proxy.store.layer_report).
"""


def check_number(number: int, at_most: int, what: str) -> None:
    """Raise Malformed for a request with more than this, before anything is read of them."""
    if number > at_most:
        raise Malformed(f"a request names {number} {what}; the proxy takes {at_most} at most")


def read_key(reader: Reader, flexible: bool) -> ResourceKey:
    """Read a resource's type and name."""
    kind = reader.u8()
    return kind, reader.string(flexible)


def read_result_head(reader: Reader, flexible: bool) -> tuple[int, ResourceKey]:
    """Read a result's error_code and resource."""
    error_code = reader.i16()
    reader.skip_string(flexible)  # error_message
    return error_code, read_key(reader, flexible)


def write_result_head(key: ResourceKey, error_code: int, message: str | None, flexible: bool) -> bytes:
    """Encode a result's error_code, error_message and resource."""
    kind, name = key
    return i16(error_code) + write_message(message, flexible) + bytes([kind]) + string(name, flexible)


def write_response_head(correlation_id: int, throttle_time_ms: int, flexible: bool) -> bytes:
    """Encode the header and throttle_time_ms, which stand before the results."""
    return i32(correlation_id) + write_tags(flexible) + i32(throttle_time_ms)
