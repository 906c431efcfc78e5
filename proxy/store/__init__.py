"""The store of quotas: the configuration file and the topic of changes, merged into the limits in force."""
