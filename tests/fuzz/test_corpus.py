"""The kept inputs of every target on this build, and mutations of them for a moment."""

import random

import pytest

from tests.fuzz import harness

SECONDS = 1.0


@pytest.mark.parametrize("name", harness.NAMES)
def test_the_corpus(name: str) -> None:
    target = harness.load(name)
    inputs = harness.corpus(name)
    assert inputs
    for data in inputs:
        harness.checked(target, data)


@pytest.mark.parametrize("name", harness.NAMES)
def test_mutations(name: str) -> None:
    assert harness.mutate(name, SECONDS, random.randrange(2**32)) > 0


def test_a_failure_shows_its_input() -> None:
    def run(data: bytes) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        harness.checked(harness.Target(run, lambda: [b"seed"]), b"seed")
    assert caught.value.__notes__ == ["the input was b'seed'"]
