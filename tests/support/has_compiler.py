"""Exit with status 0 if extension modules can be built: this Python's C compiler and its headers are
installed.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path


def has_compiler() -> bool:
    """Whether setuptools would find the compiler that it runs (CC overrides the one Python was built with)
    and the headers.
    """
    compiler = os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc")
    headers = Path(sysconfig.get_path("include"), "Python.h")
    return shutil.which(compiler.split()[0]) is not None and headers.exists()


if __name__ == "__main__":
    sys.exit(not has_compiler())
