"""Compiles the pure rings with mypyc.

QUOTA_PROXY_BUILD selects how: auto (compile if there is a compiler), quick (as auto, in less than half the
time, to slower code), pure (do not compile), require (fail without a compiler).
"""

import os
import shutil
import sys
import sysconfig
import tomllib
from pathlib import Path

from setuptools import Extension, setup

MODES = ("auto", "quick", "pure", "require")
ROOT = Path(__file__).parent
WARNINGS = ["-Wno-misleading-indentation"]
"""For this warning GCC reads the lines of the generated file again and again, which takes longer than
compiling it."""


def sources() -> list[str]:
    """Every file of the compiled rings, as pyproject lists them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    entries = [ROOT / entry for entry in settings["tool"]["quota-proxy"]["compiled"]]
    files = [file for entry in entries for file in (entry.rglob("*.py") if entry.is_dir() else [entry])]
    return sorted(str(file.relative_to(ROOT)) for file in files)


def has_compiler() -> bool:
    """Whether setuptools would find the compiler that it runs (CC overrides the one Python was built with)
    and Python's headers. The Makefile asks this, too.
    """
    compiler = os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc")
    headers = Path(sysconfig.get_path("include"), "Python.h")
    return shutil.which(compiler.split()[0]) is not None and headers.exists()


def compiled(mode: str) -> list[Extension]:
    """The extension modules of a mode; none if the rings stay interpreted."""
    if mode not in MODES:
        raise SystemExit(f"QUOTA_PROXY_BUILD is {mode!r}; it takes one of {', '.join(MODES)}")
    if mode in ("auto", "quick") and not has_compiler():
        # Without this, the wheel would have the platform in its name, and nothing for it.
        print("There is no C compiler with Python's headers: the rings stay interpreted", file=sys.stderr)
        return []
    if mode == "pure":
        return []
    from mypyc.build import mypycify

    quick = mode == "quick"
    extensions: list[Extension] = mypycify(
        sources(), opt_level="0" if quick else "3", debug_level="0" if quick else "1"
    )
    for extension in extensions:
        extension.optional = mode != "require"
        # No other library links to it, so calls within it need no indirection and may be inlined.
        extension.extra_compile_args = [*extension.extra_compile_args, "-fvisibility=hidden", *WARNINGS]
    return extensions


if __name__ == "__main__":
    setup(ext_modules=compiled(os.environ.get("QUOTA_PROXY_BUILD", "auto")))
