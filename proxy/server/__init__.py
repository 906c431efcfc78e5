"""The shell: the sockets, the clock and the log around the pure rings."""
