"""unreviewed_wait: a wait that does not become shorter when this process's part of the limit grows."""

from typing import Final

from proxy.quota.measure.bucket import Bucket

LEAST_PART: Final = 0.1
"""While others use the whole limit, a process has nearly none of it until a moment after it has reported that
a client waits. A wait is at most as long as with this part.
"""


def unreviewed_wait(bucket: Bucket, seconds: float) -> float:
    """Return the wait for a debt, which takes `seconds` with the present part."""
    rate = max(bucket.limit, bucket.whole_limit * LEAST_PART)
    return seconds * bucket.limit / rate if bucket.limit < rate else seconds
