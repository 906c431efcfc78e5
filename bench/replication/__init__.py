"""Measures reassignments of partitions under replication throttles: `python -m bench.replication`."""
