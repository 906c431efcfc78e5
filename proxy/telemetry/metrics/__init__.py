"""`/metrics`: the families and their bounds."""
