"""The broker's side of a connection: its socket, and large responses, which go past the relay."""
