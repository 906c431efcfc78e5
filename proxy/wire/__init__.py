"""Kafka's bytes: frames, headers, and views of the few fields that quotas need."""
