"""What the process shows: the pages of the admin port, metrics, and usage events."""
