"""Quota keys in the configs of topics and brokers: altered, described and created through the proxy."""
