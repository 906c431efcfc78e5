"""How the commands import libraries that do more than they need."""

import sys


def import_kio() -> None:
    """Import kio without hypothesis.

    Wherever hypothesis is installed, kio registers its types with it. That takes a quarter of a second, and
    creates a folder .hypothesis in the current one. An import of a module that is None in sys.modules fails.
    """
    if "hypothesis" in sys.modules:
        import kio.static.primitive

        return
    sys.modules["hypothesis"] = None  # type: ignore[assignment]
    try:
        import kio.static.primitive  # noqa: F401
    finally:
        del sys.modules["hypothesis"]
