"""The peers that are compared: each is a process on loopback that connects to the fake broker."""
