"""Rates, and the buckets that hold clients to them."""
