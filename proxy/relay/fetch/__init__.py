"""Fetch requests from which quotas may omit partitions."""
