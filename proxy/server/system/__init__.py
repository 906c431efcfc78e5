"""What the process arranges with the system and the interpreter: memory, descriptors, systemd."""
