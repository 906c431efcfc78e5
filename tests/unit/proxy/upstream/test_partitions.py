from proxy.upstream.partitions import Partitions, RecentMutations, to_delete, to_grow
from proxy.wire.cursor import NO_ID

ONE, OTHER = b"1" * 16, b"2" * 16


def test_deleting_takes_the_larger_count() -> None:
    assert to_delete([Partitions(3, ONE), Partitions(5, ONE)]) == 5
    assert to_delete([Partitions(3, ONE), Partitions(5, OTHER)]) == 5
    assert to_delete([Partitions(3), None]) == 3
    assert to_delete([None, None]) == 0


def test_growing_takes_the_newer_count() -> None:
    """A topic never loses partitions, so the larger count of one topic is the newer."""
    assert to_grow([Partitions(3, ONE), Partitions(5, ONE)]) == 5
    assert to_grow([None, Partitions(5, ONE)]) == 5
    assert to_grow([None, Partitions(5)]) == 5


def test_growing_takes_the_smaller_count_if_ids_differ() -> None:
    assert to_grow([Partitions(3, ONE), Partitions(5, OTHER)]) == 3
    assert to_grow([Partitions(5, ONE), Partitions(3, NO_ID)]) == 3
    assert to_grow([Partitions(5), Partitions(3)]) == 3


def test_unknown_topic() -> None:
    assert to_grow([None, None]) is None


def test_mutations_are_remembered_for_a_while() -> None:
    remembered = RecentMutations(seconds=10.0)
    remembered.note("a", Partitions(3, ONE), 100.0)
    assert remembered.recall("a", 109.9) == Partitions(3, ONE)
    assert remembered.name(ONE) == "a"
    assert remembered.recall("a", 110.0) is None
    assert remembered.recall("b", 100.0) is None
    assert remembered.name(OTHER) is None


def test_newest_mutation_replaces_older_ones() -> None:
    remembered = RecentMutations()
    remembered.note("a", Partitions(3, ONE), 100.0)
    remembered.note("a", Partitions(2, OTHER), 101.0)
    assert remembered.recall("a", 101.0) == Partitions(2, OTHER)
    assert (remembered.name(ONE), remembered.name(OTHER)) == (None, "a")


def test_deleted_topic_is_not_remembered() -> None:
    remembered = RecentMutations()
    remembered.note("a", Partitions(3, ONE), 100.0)
    remembered.forget("a")
    remembered.forget("never there")
    assert remembered.recall("a", 100.0) is None
    assert remembered.name(ONE) is None


def test_oldest_mutations_are_dropped() -> None:
    remembered = RecentMutations(seconds=10.0, at_most=2)
    for number, name in enumerate("abc"):
        remembered.note(name, Partitions(1, name.encode() * 16), 100.0 + number)
    assert [remembered.recall(name, 102.0) for name in "abc"] == [
        None,
        Partitions(1, b"b" * 16),
        Partitions(1, b"c" * 16),
    ]
    remembered.note("d", Partitions(1), 111.5)
    assert remembered.name(b"b" * 16) is None
    assert remembered.name(b"c" * 16) == "c"
