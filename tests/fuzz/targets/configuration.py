"""YAML files: every file is read, or rejected with the documented error.

Input: who reads the file, and its content.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from pipeline.errors import InputError
from pipeline.inputs.prices import read_prices
from pipeline.inputs.quota_file import read_quotas as read_quotas_to_replay
from proxy.cli.check_listener import listener_lines
from proxy.cli.quotas.quota_file import read_quotas, to_yaml
from proxy.errors import SettingsError
from proxy.quota.kinds import load_kinds
from proxy.store.from_settings import load_configuration
from tests.fuzz.harness import HERE, Data, Target

ROOT: Final = HERE.parents[1]
KINDS: Final = load_kinds()
FOLDER: Final = tempfile.TemporaryDirectory(
    prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None
)
FILE: Final = Path(FOLDER.name) / "file.yaml"
CALLBACK: Final = b"callback"
"""Not fuzzed: it names code to import."""


def _configuration(file: Path) -> None:
    try:
        loaded = load_configuration(file, KINDS)
    except SettingsError as error:
        _is_a_sentence(error)
        return
    for listener in loaded.settings.listeners:
        assert listener_lines(loaded.settings, listener)
    loaded.quotas.build({})


def _quotas(file: Path) -> None:
    try:
        quotas = read_quotas(file)
    except SettingsError as error:
        _is_a_sentence(error)
        return
    file.write_text(to_yaml(quotas.lasting), encoding="utf-8")
    assert read_quotas(file).lasting == quotas.lasting


def _is_a_sentence(error: SettingsError) -> None:
    assert str(error).startswith(f"{FILE}")
    assert len(error.expected) < 10_000


def _prices(file: Path) -> None:
    with suppress(InputError):
        read_prices(file)


def _replayed(file: Path) -> None:
    with suppress(InputError):
        read_quotas_to_replay(file).limits()


READERS: Final[tuple[Callable[[Path], None], ...]] = (_configuration, _quotas, _prices, _replayed)


def run(data: bytes) -> None:
    given = Data(data)
    reader, content = READERS[given.byte() % len(READERS)], given.rest()
    if CALLBACK in content:
        return
    FILE.write_bytes(content)
    reader(FILE)


def seeds() -> Iterator[bytes]:
    for path in sorted((ROOT / "config").glob("**/*.yaml")):
        for reader in range(len(READERS)):
            yield bytes([reader]) + path.read_bytes()
    yield b"\1" + (ROOT / "tests/pipeline/golden/quotas.yaml").read_bytes()
    yield b"\3" + (ROOT / "tests/pipeline/golden/quotas.yaml").read_bytes()
    yield b"\2" + b"{currency: EUR, per_gib_in: [{price: 1, up_to: 5}, {price: 2}]}"
    for text in (
        b"{a: &a [1, *a]}",
        b"a: !!int ''",
        b"<<: [{a: 1}, {b: 2}]",
        b"? [a]\n: b",
        b"a: 1:30.5",
        b"--- |\n x",
    ):
        yield b"\0" + text


WORDS: Final = (
    *(b"&a ", b"*a", b"<<: ", b"!!int ", b"!!binary ", b"!!set ", b"!!timestamp ", b"? ", b"- ", b": ", b"{"),
    *(b".inf", b".nan", b"0x", b"1:30", b"2024-13-45", b"null", b"~", b"''", b"\t", b"\xef\xbb\xbf", b"\x85"),
    *(b"quotas:", b"clients:", b"entity:", b"user:", b"ip:", b"expires:", b"topics:", b"brokers:"),
)
TARGET: Final = Target(run, seeds, WORDS)
