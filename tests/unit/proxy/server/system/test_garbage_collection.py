"""Long full collections freeze all objects, and a paused collector collects nothing."""

import gc
from collections.abc import Iterator

import pytest

from proxy.server.system.garbage_collection import FREEZE_SECONDS, GarbageCollection, gc_paused


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    thresholds, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = callbacks
    gc.enable()
    # What is not frozen is what the next test makes, as after tests/conftest.py.
    gc.collect()
    gc.freeze()


def _walked() -> int:
    return len(gc.get_objects())


@pytest.mark.parametrize(("took", "again"), [(FREEZE_SECONDS / 2, True), (FREEZE_SECONDS * 2, False)])
def test_a_long_full_collection_freezes_all_objects(took: float, again: bool) -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += took
        return now

    GarbageCollection(clock).start()
    kept = [[number] for number in range(1000)]
    gc.collect()
    assert (_walked() >= len(kept)) is again


def test_collections_of_younger_generations_freeze_nothing() -> None:
    GarbageCollection(iter(range(100)).__next__).start()
    gc.disable()  # A full collection may be due.
    kept = [[number] for number in range(1000)]
    gc.collect(1)
    assert _walked() >= len(kept)


def test_a_paused_collector_collects_nothing() -> None:
    with gc_paused():
        assert not gc.isenabled()
        kept = [[number] for number in range(1000)]
    assert gc.isenabled()
    assert _walked() < len(kept)


def test_a_full_collection_comes_before_there_are_many_objects() -> None:
    """Each connection may have hundreds of requests in flight, each of which is several objects."""
    before = [[number] for number in range(100_000)]
    gc.collect()
    collected: list[int] = []

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            collected.append(len(gc.get_objects()))

    GarbageCollection(iter(range(1_000_000)).__next__).start()
    gc.callbacks.append(count)
    kept = [[number] for number in range(50_000)]
    assert len(collected) > 8
    assert max(collected) < 6_000
    del before, kept
