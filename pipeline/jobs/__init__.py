"""What the command runs: read, transform, write."""
