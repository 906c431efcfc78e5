"""Compiles the pure rings with mypyc.

QUOTA_PROXY_BUILD selects how: auto (compile if there is a compiler), quick (as auto, in less than half the
time, to slower code), pure (do not compile), require (fail without a compiler). Two further modes need GCC:
instrumented code counts which of its branches run, and profiled code is optimized by these counts. `make
profiled` builds both, with a load between them.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

MODES = ("auto", "quick", "pure", "require", "instrumented", "profiled")
ROOT = Path(__file__).parent
PROFILE = Path("build", "profile")
"""Where instrumented code writes its counts, and a profiled build finds them."""
WARNINGS = ["-Wno-misleading-indentation"]
"""For this warning GCC reads the lines of the generated file again and again, which takes longer than
compiling it."""
METADATA = {"dist_info", "egg_info"}
"""The commands with which pip asks for the project's name, version and dependencies before it builds."""
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


def compiler() -> list[str]:
    """The compiler that setuptools runs: CC overrides the one Python was built with."""
    return (os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc")).split()


def has_compiler() -> bool:
    """Whether setuptools would find the compiler and Python's headers. The Makefile asks this, too."""
    headers = Path(sysconfig.get_path("include"), "Python.h")
    return shutil.which(compiler()[0]) is not None and headers.exists()


def has_gcc() -> bool:
    """Whether the compiler is GCC. The Makefile asks this, too. Clang's profiles have another format."""
    if not has_compiler():
        return False
    macros = [*compiler(), "-dM", "-E", "-x", "c", os.devnull]
    done = subprocess.run(macros, capture_output=True, text=True, check=False)
    return "__GNUC__" in done.stdout and "__clang__" not in done.stdout


def cold_paths() -> list[str]:
    """Write COLD_PATHS to a header; return the options that include it. Windows has other options."""
    if sys.platform == "win32":
        return []
    header = Path("build", "cold_paths.h")
    header.parent.mkdir(exist_ok=True)
    header.write_text(COLD_PATHS)
    return ["-include", str(header)]


def profiling(mode: str, source: str) -> tuple[list[str], list[str]]:
    """The options for the compiler and the linker with which an extension counts, or uses the counts. Raises
    SystemExit if there are none of this source.
    """
    folder = PROFILE.absolute()
    if mode == "instrumented":
        return [f"-fprofile-generate={folder}"], ["-fprofile-generate"]
    if not any(folder.glob(f"*{Path(source).stem}.gcda")):
        raise SystemExit(f"{folder} has no counts of these sources: run make profiled")
    # What the load does not execute is optimized as without counts, and not for its size.
    options = ["-fprofile-partial-training", "-Wno-missing-profile"]
    return [f"-fprofile-use={folder}", *options], []


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
    by_profile = mode in ("instrumented", "profiled")
    if by_profile and not has_gcc():
        raise SystemExit(
            f"QUOTA_PROXY_BUILD={mode} needs GCC and Python's headers; make compiled needs any compiler"
        )
    from mypyc.build import mypycify

    quick = mode == "quick"
    extensions: list[Extension] = mypycify(
        sources(), opt_level="0" if quick else "3", debug_level="0" if quick else "1"
    )
    hints = [] if quick else cold_paths()
    for extension in extensions:
        extension.optional = mode in ("auto", "quick")
        # No other library links to it, so calls within it need no indirection and may be inlined.
        extension.extra_compile_args = [
            *extension.extra_compile_args,
            "-fvisibility=hidden",
            *hints,
            *WARNINGS,
        ]
        if by_profile and not _is_shim(extension):
            compiling, linking = profiling(mode, extension.sources[0])
            extension.extra_compile_args += compiling
            extension.extra_link_args = linking
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


class CountedBuild(build_ext):
    """Compiles in one folder. GCC finds the counts by the path of the object file, which pip would put into a
    temporary folder.
    """

    def finalize_options(self) -> None:
        super().finalize_options()
        self.build_temp = str(Path("build", "counted"))


def _is_shim(extension: Extension) -> bool:
    return not extension.name.endswith("__mypyc")


def _include(shim: Extension) -> str:
    """Include the source of a shim. Each also defines PyInit___init__, which only Windows needs."""
    [source] = shim.sources
    own = f"PyInit___init___of_{shim.name.replace('.', '_')}"
    return f'#define PyInit___init__ {own}\n#include "{Path(source).absolute()}"\n#undef PyInit___init__\n'


if __name__ == "__main__":
    mode = os.environ.get("QUOTA_PROXY_BUILD", "auto")
    commands = {"quick": JoinedShims, "instrumented": CountedBuild, "profiled": CountedBuild}
    # mypyc takes ten seconds to translate the rings.
    extensions = [] if METADATA.intersection(sys.argv) else compiled(mode)
    setup(ext_modules=extensions, cmdclass={"build_ext": commands.get(mode, build_ext)})
