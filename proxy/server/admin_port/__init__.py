"""The admin port of the process: its server, its site, and what it shows."""
