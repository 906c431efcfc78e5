"""Replication quotas: KIP-73, and the whole-broker throttle of KAFKA-7983."""

from proxy.quota.kinds.replication.kind import KIND as KIND
