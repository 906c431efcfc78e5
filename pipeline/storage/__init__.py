"""Files and tables: sources of events, and what a job writes."""
