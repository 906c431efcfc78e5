"""What one connection may take of what all share: memory, turns of the event loop, and work of brokers."""
