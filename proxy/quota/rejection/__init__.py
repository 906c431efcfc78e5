"""Partitions of Produce requests that are rejected, and what follows for their producer."""
