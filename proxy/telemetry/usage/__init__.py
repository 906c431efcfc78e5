"""Usage events, and the sinks that they go to."""
