"""One listener: its ports, its TLS, and the connections that it accepts."""
