from proxy.wire.fetch.known_watermarks import WATERMARKS_AT_MOST, KnownWatermarks
from proxy.wire.fetch.rewrite import Watermarks


def marks(known: KnownWatermarks, partition: int = 0, user: str = "alice") -> Watermarks:
    made = Watermarks()
    made.known, made.user, made.topic, made.partition = known, user, "orders", partition
    return made


def test_what_one_consumer_is_told_all_of_its_principal_know() -> None:
    known = KnownWatermarks()
    one, other = marks(known), marks(known)
    assert other.offsets is None
    one.tell(70, 69, 1)
    assert one.offsets == other.offsets == (70, 69, 1)
    assert marks(known, 1).offsets is None


def test_another_principal_does_not_learn_it() -> None:
    """It may have no right to read the topic."""
    known = KnownWatermarks()
    marks(known).tell(70, 69, 1)
    assert marks(known, user="bob").offsets is None


def test_what_was_told_under_another_leader_epoch_is_what_all_know() -> None:
    known = KnownWatermarks()
    one = marks(known)
    one.tell(70, 69, 1)
    one.outdated = True
    marks(known).tell(80, 80, 1)
    assert one.offsets == (80, 80, 1)


def test_a_follower_knows_what_its_own_connection_was_told() -> None:
    alone = Watermarks()
    alone.tell(70, 69, 1)
    assert alone.offsets == (70, 69, 1)
    alone.outdated = True
    assert alone.offsets is None


def test_the_oldest_go_first() -> None:
    known = KnownWatermarks()
    for partition in range(WATERMARKS_AT_MOST + 1):
        known.tell("alice", "orders", partition, (1, 1, 1))
    assert known.find("alice", "orders", 0) is None
    assert known.find("alice", "orders", 1) == known.find("alice", "orders", WATERMARKS_AT_MOST) == (1, 1, 1)
