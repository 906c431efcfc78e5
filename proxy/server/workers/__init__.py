"""Several processes on one host: a supervisor, and workers that serve the same ports."""
