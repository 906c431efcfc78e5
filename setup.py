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
from setuptools.command.build_ext import build_ext

MODES = ("auto", "quick", "pure", "require")
ROOT = Path(__file__).parent
WARNINGS = ["-Wno-misleading-indentation"]
"""For this warning GCC reads the lines of the generated file again and again, which takes longer than
compiling it."""
COLD_PATHS = """\
struct _object;
#define COLD __attribute__((cold))
COLD void CPy_AddTraceback(const char *, const char *, int, struct _object *);
COLD void CPy_TypeErrorTraceback(
    const char *, const char *, int, struct _object *, const char *, struct _object *
);
COLD void CPy_TypeError(const char *, struct _object *);
COLD void CPy_AttributeError(const char *, const char *, const char *, const char *, int, struct _object *);
#undef COLD
"""
"""The functions with which mypyc's code reports exceptions. The compiler then moves the code that calls them
away from the code that every request executes: together they do not fit into a processor's cache."""


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


def cold_paths() -> list[str]:
    """Write COLD_PATHS to a header; return the options that include it. Windows has other options."""
    if sys.platform == "win32":
        return []
    header = Path("build", "cold_paths.h")
    header.parent.mkdir(exist_ok=True)
    header.write_text(COLD_PATHS)
    return ["-include", str(header)]


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
    hints = [] if quick else cold_paths()
    for extension in extensions:
        extension.optional = mode != "require"
        # No other library links to it, so calls within it need no indirection and may be inlined.
        extension.extra_compile_args = [
            *extension.extra_compile_args,
            "-fvisibility=hidden",
            *hints,
            *WARNINGS,
        ]
    return extensions


class JoinedShims(build_ext):
    """Compiles the shims of all modules together.

    mypyc puts the code of all modules into one extension, and makes a further one for each module, a shim,
    which finds the module there. To compile and link 200 shims one by one takes a quarter of a quick build.
    Here each is a copy of one library with the functions of all. Modules of the same name need several ones.
    """

    def build_extensions(self) -> None:
        self._libraries: dict[str, str] = {}
        """By the name of a shim, the library that has its function."""
        groups: list[dict[str, Extension]] = []
        for shim in filter(_is_shim, self.extensions):
            last = shim.name.removesuffix(".__init__").rpartition(".")[2]
            group = next((each for each in groups if last not in each), None)
            if group is None:
                groups.append(group := {})
            group[last] = shim
        for number, group in enumerate(groups):
            first = next(iter(group.values()))
            joined = Path(self.build_temp, f"shims_{number}.c")
            joined.parent.mkdir(parents=True, exist_ok=True)
            joined.write_text("".join(map(_include, group.values())))
            first.sources = [str(joined)]
            built = self.get_ext_fullpath(first.name)
            self._libraries |= {shim.name: built for shim in group.values() if shim is not first}
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        if ext.name not in self._libraries:
            super().build_extension(ext)
            return
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self._libraries[ext.name], target)


def _is_shim(extension: Extension) -> bool:
    return not extension.name.endswith("__mypyc")


def _include(shim: Extension) -> str:
    """Include the source of a shim. Each also defines PyInit___init__, which only Windows needs."""
    [source] = shim.sources
    own = f"PyInit___init___of_{shim.name.replace('.', '_')}"
    return f'#define PyInit___init__ {own}\n#include "{Path(source).absolute()}"\n#undef PyInit___init__\n'


if __name__ == "__main__":
    mode = os.environ.get("QUOTA_PROXY_BUILD", "auto")
    setup(ext_modules=compiled(mode), cmdclass={"build_ext": JoinedShims} if mode == "quick" else {})
