"""One limit, many processes: each process's share is a function of what all have written to one log."""
