"""Kafka's bytes: frames, headers, and views of the few fields that quotas need. No sockets, no clock, no log."""
