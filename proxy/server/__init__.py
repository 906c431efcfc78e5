"""The shell: sockets, clock and log around the pure rings. Nothing here knows a quota."""
