"""Fetch requests from which partitions can be omitted, and the changes of their responses."""
