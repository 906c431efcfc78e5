"""The wheel has all files that run, and runs where the sources are not."""

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
from importlib import import_module
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import mypyc
import pytest

ROOT: Final = Path(__file__).parents[3]
FOLDERS: Final = ("proxy", "pipeline")
CODE: Final = {".py", ".pyc", ".so"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built in a copy of the sources, for setuptools writes into their folder."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for file in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    run_pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(folder), str(source))
    [wheel] = folder.glob("*.whl")
    return wheel


def run_pip(*arguments: str) -> None:
    environment = {**os.environ, "QUOTA_PROXY_BUILD": "pure"}
    command = [sys.executable, "-m", "pip", "--quiet", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_wheel_has_every_file_of_the_packages(wheel: Path) -> None:
    packed = set(ZipFile(wheel).namelist())
    files = [file for name in FOLDERS for file in (ROOT / name).rglob("*") if file.is_file()]
    wanted = {
        str(file.relative_to(ROOT))
        for file in files
        if "__pycache__" not in file.parts and (file.suffix not in CODE or file.suffix == ".py")
    }
    assert sorted(wanted - packed) == []
    assert {name.partition("/")[0] for name in packed if ".dist-info/" not in name} == set(FOLDERS)
    assert [name for name in packed if name.endswith("licenses/LICENSE")]


def test_the_installed_wheel_checks_a_file(wheel: Path, tmp_path: Path) -> None:
    run_pip("install", "--no-deps", "--target", str(tmp_path / "site"), str(wheel))
    script = tmp_path / "site" / "bin" / "quota-proxy"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    command = [sys.executable, str(script), "check", "--config", str(ROOT / "config/quota-proxy.yaml")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    where = [sys.executable, "-c", "import proxy; print(proxy.__file__)"]
    found = subprocess.run(where, env=environment, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert Path(found.stdout.strip()).is_relative_to(tmp_path)


@pytest.mark.parametrize("mode", ["auto", "quick"])
def test_without_a_compiler_the_wheel_is_a_pure_one(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "/nonexistent/cc")
    build = runpy.run_path(str(ROOT / "setup.py"))
    assert not build["has_compiler"]()
    assert build["compiled"](mode) == []


@pytest.mark.parametrize("command", ["dist_info", "egg_info"])
def test_metadata_takes_no_translation_of_the_rings(command: str, tmp_path: Path) -> None:
    (tmp_path / "proxy").mkdir()
    for file in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "proxy/__init__.py"):
        shutil.copy(ROOT / file, tmp_path / file)
    done = subprocess.run(
        [sys.executable, "setup.py", command],
        env={**os.environ, "QUOTA_PROXY_BUILD": "require"},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("*.*-info/top_level.txt"))
    assert not (tmp_path / "build").exists()


def test_code_is_optimized_by_the_counts_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = runpy.run_path(str(ROOT / "setup.py"))
    if not build["has_gcc"]():
        pytest.skip("the C compiler is not GCC, or there is none")
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "branches.c"
    source.write_text("int main(int argc, char **argv) { return argc > 1 ? 1 : 0; }\n")
    with pytest.raises(SystemExit, match="no counts of these sources"):
        build["profiling"]("profiled", str(source))
    for mode in ("instrumented", "profiled"):
        compiling, linking = build["profiling"](mode, str(source))
        flags = ["-O2", *compiling, "-Wmissing-profile", "-Werror"]
        run([*build["compiler"](), "-c", *flags, str(source), "-o", "branches.o"])
        run([*build["compiler"](), *linking, "branches.o", "-o", "branches"])
        run(["./branches"])


def test_both_builds_have_the_same_object_files_wherever_pip_builds(tmp_path: Path) -> None:
    """GCC finds the counts by their paths."""
    build = runpy.run_path(str(ROOT / "setup.py"))
    distribution = import_module("setuptools").Distribution()  # it has no types
    distribution.get_command_obj("build").build_temp = str(tmp_path)
    command = build["CountedBuild"](distribution)
    command.ensure_finalized()
    assert command.build_temp == "build/counted"


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("mode", ["instrumented", "profiled"])
def test_only_gcc_counts(mode: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clang = tmp_path / "clang"
    clang.write_text("#!/bin/sh\necho '#define __GNUC__ 4'\necho '#define __clang__ 1'\n")
    clang.chmod(0o755)
    monkeypatch.setenv("CC", str(clang))
    build = runpy.run_path(str(ROOT / "setup.py"))
    with pytest.raises(SystemExit, match="needs GCC"):
        build["compiled"](mode)


def test_what_setup_declares_as_cold_agrees_with_mypycs_declarations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = runpy.run_path(str(ROOT / "setup.py"))
    if not build["has_compiler"]():
        pytest.skip("there is no C compiler with Python's headers")
    monkeypatch.chdir(tmp_path)
    options = build["cold_paths"]()
    (tmp_path / "source.c").write_text('#include "CPy.h"\n')
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    folders = [sysconfig.get_path("include"), str(Path(mypyc.__file__).with_name("lib-rt"))]
    flags = ["-fsyntax-only", *(f"-I{folder}" for folder in folders), *options]
    done = subprocess.run([*compiler, *flags, "source.c"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
