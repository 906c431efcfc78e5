"""The ports of a listener: which there are, and their sockets from the start on."""
