"""A wire-level load pair: the fake broker `python -m bench.load.broker` and its driver `python -m
bench.load.drive`.
"""
