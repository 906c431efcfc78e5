"""Measures what the proxy costs beside other proxies, as ratios in one run: `python -m bench`."""
