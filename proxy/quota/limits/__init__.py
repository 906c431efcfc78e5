"""Configured limits: which quota holds for which client, topic or broker."""
