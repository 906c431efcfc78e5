"""Where limits come from."""
