"""Replays events with other quotas."""
