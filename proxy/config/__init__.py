"""Reading a configuration file: its lines, its shape, and a sentence for whatever is wrong in it."""
