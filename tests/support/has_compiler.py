"""Exits 0 where extension modules can be built: this Python's C compiler is there, and so are its headers."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path


def has_compiler() -> bool:
    """Whether setuptools would find what it runs (CC wins over what Python was built with) and includes."""
    compiler = os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc")
    headers = Path(sysconfig.get_path("include"), "Python.h")
    return shutil.which(compiler.split()[0]) is not None and headers.exists()


if __name__ == "__main__":
    sys.exit(not has_compiler())
