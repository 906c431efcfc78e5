"""The brokers of a listener: which one a client gets, how it connects to it, and what quotas know of them."""
