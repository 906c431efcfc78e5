"""Large messages whose bytes go from one socket of a connection to the other past the relay."""
