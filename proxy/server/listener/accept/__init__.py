"""From the port to an open connection: limits, the PROXY header, and TLS."""
