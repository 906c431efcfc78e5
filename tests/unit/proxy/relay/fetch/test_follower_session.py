"""FollowerFetchSession: what is special about a follower's session."""

from tests.support.stories.fetching import COLD, HOT
from tests.support.stories.session_side import FOLLOWER, Side, entry, incremental, told


def test_an_omitted_partition_is_asked_about_once_without_bytes() -> None:
    side = Side(FOLLOWER)
    side.quota.omit(2.0, 0)
    assert side.next(incremental(entry(HOT, 0))) == told(entry(HOT, 0, most=0))
    assert side.session.probes == 1
    # It asks no second time, though the broker has not responded.
    assert side.next() is None
    assert side.session.probes == 0


def test_after_a_probe_the_broker_forgets_the_partition() -> None:
    side = Side(FOLLOWER)
    side.quota.omit(2.0, 0)
    side.next(incremental(entry(HOT, 0), entry(COLD, 0)))
    side.session.marks((HOT.encode(), 0)).tell(70, 70, 0)
    side.session.reported(HOT.encode(), 0)
    assert side.next() == told(forgotten=[(HOT, 0)])
    assert side.session.probes == 0


def test_a_full_request_asks_for_watermarks_of_another_leader_epoch_again() -> None:
    side = Side(FOLLOWER)
    hot, cold = entry(HOT, 0, epoch=3), entry(COLD, 0)
    side.full(hot, cold)
    side.session.marks((HOT.encode(), 0)).tell(70, 70, 0)
    side.quota.omit(2.0, 0)
    assert side.full(hot) == (told(cold), 1)
    elected = entry(HOT, 0, epoch=4)
    topics, added = side.full(elected)
    assert (topics, added) == (told(entry(HOT, 0, most=0, epoch=4), cold), 0)
    assert side.session.probes == 1


def test_the_watermarks_of_all_partitions_are_kept_and_show_the_lag() -> None:
    side = Side(FOLLOWER)
    side.next(incremental(entry(HOT, 0, offset=10), entry(COLD, 0, offset=5)))
    assert side.session.lag() == 0
    for topic in (HOT, COLD):
        side.session.marks((topic.encode(), 0)).tell(70, 70, 0)
    assert side.session.lag() == 60 + 65
    side.next(incremental(forgotten=((COLD, 0),)))
    assert side.session.lag() == 60
