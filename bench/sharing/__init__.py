"""Measures limits that several processes share: `python -m bench.sharing`."""
