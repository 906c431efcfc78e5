"""Counters of a listener, plain integers that a scrape reads."""
