"""`python -m tests.fuzz [TARGET ...]`: fuzzes the targets, guided by coverage if atheris is installed.

A target runs in a process of its own. The inputs that atheris finds stay in build/fuzz/TARGET. The next run
starts from them. --keep puts those into tests/fuzz/corpus that reach the same code. An input that fails is
shown, and is in build/fuzz/TARGET.failed/.
"""

import argparse
import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.fuzz import harness

FOUND: Final = harness.HERE.parents[1] / "build" / "fuzz"
"""Where found inputs are, unless --found names another folder."""
SECONDS_PER_INPUT: Final = 60
"""Code under atheris is some ten times as slow, and other work may share the machine."""
MEGABYTES: Final = 2048
KEPT_BYTES: Final = 400
"""The longest input that --keep keeps."""
KEPT_INPUTS: Final = 40
MISSING: Final = (
    "atheris is not installed: it has wheels only for some platforms (pip install --group fuzz). Without it, "
    "inputs are mutated without the guidance of coverage."
)


def main() -> int:
    arguments = _arguments()
    if arguments.inside:
        (target,) = arguments.targets
        _guided(target, arguments.libfuzzer)
        return 0
    guided = not arguments.mutate and importlib.util.find_spec("atheris") is not None
    if not guided and not arguments.mutate:
        print(MISSING)
    run: Callable[[str, float, Path], int] = _run_guided if guided else _run_mutations
    found: Path = arguments.found
    failed = [name for name in arguments.targets if run(name, arguments.seconds, found) != 0]
    if arguments.keep and not failed:
        for name in arguments.targets:
            _keep(name, found)
    if failed:
        print(f"failed: {', '.join(failed)}; see above, and {found}/*.failed", file=sys.stderr)
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(harness.NAMES)}; all by default")
    parser.add_argument("--seconds", type=float, default=30.0, help="for each target")
    parser.add_argument("--mutate", action="store_true", help="do without atheris, as on the compiled build")
    parser.add_argument("--found", type=Path, default=FOUND, help="folder of the inputs that atheris finds")
    parser.add_argument("--keep", action="store_true", help="keep what was found in tests/fuzz/corpus")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--libfuzzer", nargs=argparse.REMAINDER, default=[], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = set(arguments.targets) - set(harness.NAMES)
    if unknown:
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    arguments.targets = arguments.targets or list(harness.NAMES)
    return arguments


def _guided(name: str, options: list[str]) -> None:
    """Fuzz one target with atheris, which ends the process."""
    import atheris

    with atheris.instrument_imports(include=["proxy", "pipeline"]):
        target = harness.load(name)
    atheris.Setup([sys.argv[0], *options], target.run, internal_libfuzzer=True)
    atheris.Fuzz()


def _run_guided(name: str, seconds: float, found: Path) -> int:
    """Fuzz a target in a process of its own; its exit status."""
    folder, failures = found / name, found / f"{name}.failed"
    for path in (folder, failures):
        path.mkdir(parents=True, exist_ok=True)
    for data in harness.corpus(name):
        (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)
    words = found / f"{name}.dict"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in harness.load(name).words or (b"\0",)))
    done = _inside(
        name,
        f"-max_total_time={int(seconds)}",
        f"-max_len={harness.MAX_BYTES}",
        f"-timeout={SECONDS_PER_INPUT}",
        f"-rss_limit_mb={MEGABYTES}",
        f"-artifact_prefix={failures}/",
        f"-dict={words}",
        "-print_final_stats=1",
        "-reload=0",
        str(folder),
    )
    _report(name, done)
    return done.returncode


def _inside(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.fuzz", name, "--inside", "--libfuzzer", *options]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


def _report(name: str, done: subprocess.CompletedProcess[str]) -> None:
    """Show how many inputs ran and how much code they reached, and a failure in whole."""
    output = done.stderr + done.stdout
    runs = re.search(r"stat::number_of_executed_units:\s+(\d+)", output)
    covered = re.findall(r"#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)", output)
    new = re.findall(r"#(\d+)\s+NEW\s+cov: (\d+)", output)
    text = f"{name}: {runs[1] if runs else '?'} runs"
    if covered:
        text += f", {covered[-1][1]} lines and branches, {covered[-1][3]} inputs"
    if new:
        last = next(run for run, reached in new if reached == new[-1][1])
        text += f"; no new code since run {last}"
    print(text, flush=True)
    if done.returncode != 0:
        lines = [line for line in output.splitlines() if not line.startswith("INFO: Instrumenting")]
        print("\n".join(lines)[-6000:], flush=True)


def _run_mutations(name: str, seconds: float, found: Path) -> int:
    """Run a target on mutations of its corpus; 0, as a failure ends it."""
    seed = time.time_ns()
    print(f"{name}: {harness.mutate(name, seconds, seed)} runs without guidance", flush=True)
    return 0


def _keep(name: str, all_found: Path) -> None:
    """Write the smallest set of inputs that reaches the same code as all that were found."""
    found, merged = all_found / name, all_found / f"{name}.merged"
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir()
    seeds = set(harness.corpus(name))
    done = _inside(name, "-merge=1", f"-max_len={KEPT_BYTES}", str(merged), str(found))
    if done.returncode != 0:
        _report(name, done)
    inputs = {path.read_bytes() for path in merged.iterdir()} - seeds
    chosen = sorted(inputs, key=lambda data: (len(data), data))[:KEPT_INPUTS]
    with (harness.CORPUS / f"{name}.txt").open("a") as file:
        file.writelines(f"{data!r}\n" for data in chosen)
    print(f"{name}: kept {len(chosen)} of {len(inputs)} inputs")


if __name__ == "__main__":
    sys.exit(main())
