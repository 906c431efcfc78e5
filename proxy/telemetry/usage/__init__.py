"""Usage events, and the sinks that deliver them."""
