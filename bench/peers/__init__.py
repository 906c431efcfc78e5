"""What is measured side by side: each peer is a process on loopback that leads to the fake broker."""
