"""The topic through which proxies share limits: its records, and their reading and writing."""
