"""One listener: its ports, its TLS, its connections, and how it learns its brokers."""
