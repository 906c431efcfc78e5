"""Imports the HTTP server of aiohttp without its client.

`import aiohttp.web` executes the package aiohttp first, which imports the client. That takes 0.09 CPU seconds
and 3 MiB, partly for the system's certificate authorities, and the proxy has no HTTP client.
"""

import re
import sys
import threading
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_PACKAGE: Final = "aiohttp"
_VERSION: Final = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
_executing: Final = threading.Lock()


class _Package(ModuleType):
    """A package that is executed at the first use of a name that is no module of it.

    A quota callback may use the client.
    """

    __spec__: ModuleSpec

    def __getattr__(self, name: str) -> Any:
        if self.__class__ is _Package and find_spec(f"{_PACKAGE}.{name}") is not None:
            # The import statement imports the module itself.
            raise AttributeError(f"module {_PACKAGE!r} has no attribute {name!r} yet")
        with _executing:
            if self.__class__ is _Package:
                self.__class__ = ModuleType  # type: ignore[assignment]
                assert self.__spec__.loader is not None
                self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def import_http_server() -> None:
    """Import aiohttp.web, unless aiohttp has been imported."""
    if _PACKAGE not in sys.modules and (spec := find_spec(_PACKAGE)) is not None:
        package = module_from_spec(spec)
        package.__class__ = _Package
        # A module of the server asks for it. importlib.metadata would take 2 MiB.
        if (found := _VERSION.search(Path(spec.origin or "").read_text())) is not None:
            package.__version__ = found[1]  # type: ignore[attr-defined]
        sys.modules[_PACKAGE] = package
    import aiohttp.web  # noqa: F401
