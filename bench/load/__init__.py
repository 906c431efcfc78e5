"""A wire-level load pair: the fake broker `python -m bench.load.broker` and its driver `python -m
bench.load.drive`.
"""

from proxy.cli.libraries import import_kio

# Both are processes that start often, and most of their start would be the import of hypothesis.
import_kio()
