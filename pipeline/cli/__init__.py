"""The `quota-pipeline` command."""
