"""The command `quota-proxy`."""
