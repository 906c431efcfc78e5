"""A cluster's brokers: the login, client quotas, partitions and log sizes."""
