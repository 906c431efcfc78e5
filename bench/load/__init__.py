"""A wire-level load pair: `python -m bench.load.broker` answers what `python -m bench.load.drive` asks."""
