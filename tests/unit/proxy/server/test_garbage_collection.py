"""What was walked once is not walked again, and a connection that is over leaves nothing to be found."""

import gc
from collections.abc import Iterator

import pytest

from proxy.server.garbage_collection import MOMENT_SECONDS, GarbageCollection, gc_paused


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    thresholds, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = callbacks
    gc.enable()
    gc.unfreeze()


def _walked() -> int:
    return len(gc.get_objects())


@pytest.mark.parametrize(("took", "again"), [(MOMENT_SECONDS / 2, True), (MOMENT_SECONDS * 2, False)])
def test_what_took_more_than_a_moment_is_set_aside(took: float, again: bool) -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += took
        return now

    GarbageCollection(clock).start()
    kept = [[number] for number in range(1000)]
    gc.collect()
    assert (_walked() >= len(kept)) is again


def test_younger_collections_set_nothing_aside() -> None:
    GarbageCollection(iter(range(100)).__next__).start()
    kept = [[number] for number in range(1000)]
    gc.collect(1)
    assert _walked() >= len(kept)


def test_nothing_is_collected_while_it_is_put_off() -> None:
    with gc_paused():
        assert not gc.isenabled()
        kept = [[number] for number in range(1000)]
    assert gc.isenabled()
    assert _walked() < len(kept)
