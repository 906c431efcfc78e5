"""Rates, and the buckets that compare them with limits."""
