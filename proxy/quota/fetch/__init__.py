"""What quotas allow a fetch: its bytes, and the partitions that it may have."""
