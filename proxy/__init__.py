"""Quota proxy for Apache Kafka."""

from typing import TYPE_CHECKING, Final

__version__: Final = "0.1.0"

COMPILED: bool
"""Whether the pure rings run as machine code that mypyc made, or interpreted."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> bool:
        """COMPILED is looked up when asked for, so that importing the package stays cheap."""
        if name != "COMPILED":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.machinery import EXTENSION_SUFFIXES
        from importlib.util import find_spec

        spec = find_spec("proxy.quota.measure.rates")
        return spec is not None and str(spec.origin).endswith(tuple(EXTENSION_SUFFIXES))
