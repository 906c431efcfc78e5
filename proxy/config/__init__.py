"""The configuration file: its keys as types, reading it, and checking it."""
