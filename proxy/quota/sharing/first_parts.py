"""SharedFirstParts: the part with which a bucket begins while other processes share its limit."""

from typing import Final, final

from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.first_parts import FirstParts
from proxy.quota.sharing.local_uses import bucket_key
from proxy.quota.sharing.sharing import Sharing


@final
class SharedFirstParts(FirstParts):
    """The first parts of a broker's buckets.

    A bucket is new when a client comes that has not used this process before. If the others already use the
    whole limit, the burst of an equal part would be more than the limit, so the part is the one that the log
    gives to this process.
    """

    def __init__(self, node_id: int, sharing: Sharing | None = None, without_sharing: float = 1.0) -> None:
        self.node_id: Final = node_id
        self.sharing = sharing
        """None while the log has given this process no parts."""
        self.without_sharing = without_sharing
        """The part of each limit while `sharing` is None, above 0.0."""

    def of(self, bucket: Bucket) -> float:
        """The part of its limit that this process may use, above 0.0."""
        sharing = self.sharing
        return self.without_sharing if sharing is None else sharing.part(bucket_key(self.node_id, bucket))

    def before(self, bucket: Bucket) -> float:
        sharing = self.sharing
        return (
            self.without_sharing if sharing is None else sharing.part_before(bucket_key(self.node_id, bucket))
        )
