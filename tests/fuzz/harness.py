"""Fuzzing: what the targets have in common, their corpora, and mutations without guidance.

A target is a function of bytes. It returns, or fails with anything but the errors that the code under test
documents. `python -m tests.fuzz` runs the targets; tests/fuzz/test_corpus.py replays the corpora.
"""

import ast
import importlib
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
CORPUS: Final = HERE / "corpus"
NAMES: Final = tuple(sorted(path.stem for path in (HERE / "targets").glob("[a-z]*.py")))
MAX_BYTES: Final = 4096
"""Of an input. Targets make larger messages of it where size matters."""
_VALUES: Final = (
    b"\0",
    b"\1",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\0\0\0\0",
    b"\x7f\xff\xff\xff",
    b"\xff" * 4,
    b"\xff" * 8,
)


@dataclass(frozen=True)
class Target:
    """What is fuzzed."""

    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    """Valid inputs, from which fuzzing starts."""
    words: Sequence[bytes] = ()
    """Texts that occur in valid inputs."""


def load(name: str) -> Target:
    """The target of tests/fuzz/targets/NAME.py."""
    target: Target = importlib.import_module(f"tests.fuzz.targets.{name}").TARGET
    return target


def kept(name: str) -> list[bytes]:
    """The inputs of tests/fuzz/corpus/NAME.txt: a bytes literal on each line, and comments."""
    path = CORPUS / f"{name}.txt"
    if not path.exists():
        return []
    lines = path.read_text().splitlines()
    return [ast.literal_eval(line) for line in lines if line.startswith("b")]


def corpus(name: str) -> list[bytes]:
    """The seeds and the kept inputs of a target."""
    return [*load(name).seeds(), *kept(name)]


def mutate(name: str, seconds: float, seed: int) -> int:
    """Run a target on mutations of its corpus; the number of runs. Fails with the input in a note."""
    target, rng = load(name), random.Random(seed)
    inputs = corpus(name)
    ends = time.monotonic() + seconds
    runs = 0
    while time.monotonic() < ends:
        checked(target, mutation(rng, inputs, target.words))
        runs += 1
    return runs


def checked(target: Target, data: bytes) -> None:
    """Run a target; a failure has the input in a note."""
    try:
        target.run(data)
    except BaseException as error:
        error.add_note(f"the input was {data!r}")
        raise


def mutation(rng: random.Random, inputs: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """One of the inputs with some changes."""
    data = bytearray(rng.choice(inputs))
    for _ in range(rng.choice((1, 1, 2, 3, 5, 8))):
        at = rng.randrange(len(data) + 1)
        change = rng.randrange(7)
        if change == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif change == 1:
            data[at : at + rng.randrange(1, 9)] = b""
        elif change == 2:
            data[at:at] = rng.choice((*_VALUES, *words))
        elif change == 3:
            value = rng.choice((*_VALUES, *words))
            data[at : at + len(value)] = value
        elif change == 4:
            data[at:at] = data[at : at + rng.randrange(1, 65)]
        elif change == 5:
            other = rng.choice(inputs)
            start = rng.randrange(len(other) + 1)
            data[at:] = other[start:]
        else:
            data[at:at] = rng.randbytes(rng.randrange(1, 5))
    return bytes(data[:MAX_BYTES])


class Data:
    """Takes an input apart; at its end there are zeros and nothing."""

    def __init__(self, data: bytes) -> None:
        self._data: Final = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def byte(self) -> int:
        value = self._data[self._at : self._at + 1]
        self._at += len(value)
        return value[0] if value else 0

    def number(self) -> int:
        """Of 16 bits."""
        return self.byte() << 8 | self.byte()

    def part(self) -> bytes:
        """Bytes with their length (16 bits) in front, as part() writes them."""
        return self.take(self.number())

    def take(self, size: int) -> bytes:
        value = self._data[self._at : self._at + size]
        self._at += len(value)
        return value

    def rest(self) -> bytes:
        return self.take(self.left)


def part(data: bytes) -> bytes:
    """Bytes with their length in front, for Data.part()."""
    return len(data).to_bytes(2, "big") + data


def cut(data: bytes, seed: int) -> list[bytes]:
    """The bytes in pieces; which ones, `seed` decides. 0: whole."""
    if seed == 0 or not data:
        return [data]
    rng = random.Random(seed)
    longest = rng.choice((2, 9, 60, 300))
    return list(_pieces(data, longest, rng))


def _pieces(data: bytes, longest: int, rng: random.Random) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = rng.randint(1, longest)
        yield data[at : at + size]
        at += size
