"""Rejection of partitions of Produce requests."""
