"""The direction from the broker to the client."""
