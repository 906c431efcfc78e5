"""What the process logs about quotas and clients, a few lines at a time."""
