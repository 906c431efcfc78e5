"""Topic-partition quotas: KAFKA-16042 and KAFKA-16043."""

from proxy.quota.kinds.topic_partition_bytes.kind import KIND as KIND
