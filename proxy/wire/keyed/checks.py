"""The checks of the names and patterns in requests of clients: those that would occupy a broker, or exhaust
its memory.
"""

from proxy.wire.keyed.consumer_protocol import NEWEST as GROUP_REQUESTS
from proxy.wire.keyed.consumer_protocol import check_consumer_protocol
from proxy.wire.keyed.keyed_arrays import REQUESTS, SMALLEST_BYTES, check_keys
from proxy.wire.keyed.repeated_names import DESCRIBING, check_repeats
from proxy.wire.keyed.topic_names import NEWEST as TOPIC_REQUESTS
from proxy.wire.keyed.topic_names import UNNAMED_AT_MOST, check_topic_names
from proxy.wire.patterns import VERSIONS as PATTERN_REQUESTS
from proxy.wire.patterns import check_pattern


def check_names(
    pieces: list[bytes],
    body_at: int,
    api_key: int,
    api_version: int,
    size: int,
    complete: bool,
    most_unnamed: int = UNNAMED_AT_MOST,
) -> int:
    """Check the names in a request of `size` bytes; return for how many the time has been taken that it takes
    to check one. `pieces` is its frame, or, if it is not `complete`, the first part; `body_at` is the offset
    behind the client id; `most_unnamed`: the most topics by id. Raises Malformed.
    """
    if api_key in DESCRIBING:
        return check_repeats(pieces, body_at, api_key, api_version, complete)
    if api_key in PATTERN_REQUESTS:
        return check_pattern(pieces, body_at, api_key, api_version, complete)
    if size < SMALLEST_BYTES:
        return 0
    if api_key in TOPIC_REQUESTS:
        return check_topic_names(pieces, body_at, api_key, api_version, complete, most_unnamed)
    names = 0
    if api_key in REQUESTS:
        names = check_keys(pieces, body_at, api_key, api_version, complete)
    if api_key in GROUP_REQUESTS:
        names += check_consumer_protocol(pieces, body_at, api_key, api_version, complete)
    return names
