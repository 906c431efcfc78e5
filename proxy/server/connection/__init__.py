"""One client connection: its socket, the broker's socket, and the relay between them."""
