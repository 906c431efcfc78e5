"""The broker's side of a connection."""
