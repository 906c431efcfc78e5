"""Rates of use, and the buckets that compare them with limits."""
