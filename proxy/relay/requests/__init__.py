"""The direction from the client to the broker."""
