"""Quotas omit partitions from fetches, and clients do not notice (KIP-227)."""

import pytest

from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR
from proxy.relay.fetch.sessions import MAX_PARTITIONS
from tests.support.messages.exchanges import record_batch
from tests.support.present import present
from tests.support.stories.fetching import (
    BATCH,
    COLD,
    HOT,
    MAX_BYTES,
    OURS,
    THEIRS,
    UPDATED_SECONDS,
    Story,
    fetch,
    fetched,
    opened,
)
from tests.support.stories.playbook import Playbook

SESSIONS = [7, 9, 11, 12, 13, 17, 18]


@pytest.mark.parametrize("version", SESSIONS)
def test_an_omitted_partition_is_forgotten_and_comes_back_as_the_client_had_it(version: int) -> None:
    story, play = opened(version)
    story.quota.omit(1.0, 0)
    play.client(fetch(2, {(COLD, 0): 31}, version, session=(THEIRS, 1)))
    play.to_broker(fetch(2, {(COLD, 0): 31}, version, session=(OURS, 1), forgotten=((HOT, 0),)))
    play.broker(fetched(2, {(COLD, 0): (71, BATCH)}, version, session_id=OURS))
    play.to_client(fetched(2, {(COLD, 0): (71, BATCH)}, version, session_id=THEIRS))
    # The client changes its offset while it is omitted: the broker is not told.
    play.client(fetch(3, {(HOT, 0): 15, (HOT, 1): 21}, version, session=(THEIRS, 2)))
    play.to_broker(fetch(3, {(HOT, 1): 21}, version, session=(OURS, 2)))
    play.broker(fetched(3, {}, version, session_id=OURS)).to_client(
        fetched(3, {}, version, session_id=THEIRS)
    )
    play.at(1.0)
    play.client(fetch(4, {}, version, session=(THEIRS, 3)))
    play.to_broker(fetch(4, {(HOT, 0): 15}, version, session=(OURS, 3)))
    play.broker(fetched(4, {(HOT, 0): (72, BATCH)}, version, session_id=OURS))
    play.to_client(fetched(4, {(HOT, 0): (72, BATCH)}, version, session_id=THEIRS)).idle()
    assert story.quota.seen[0] == (15, MAX_BYTES, 70)


def test_what_the_client_forgets_while_it_is_omitted_does_not_come_back() -> None:
    story, play = opened()
    story.quota.omit(1.0, 0)
    play.client(fetch(2, {}, session=(THEIRS, 1)))
    play.to_broker(fetch(2, {}, session=(OURS, 1), forgotten=((HOT, 0),)))
    play.broker(fetched(2, {}, session_id=OURS)).to_client(fetched(2, {}, session_id=THEIRS))
    play.client(fetch(3, {}, session=(THEIRS, 2), forgotten=((HOT, 0),)))
    play.to_broker(fetch(3, {}, session=(OURS, 2)))
    play.broker(fetched(3, {}, session_id=OURS)).to_client(fetched(3, {}, session_id=THEIRS))
    play.at(1.0)
    play.client(fetch(4, {}, session=(THEIRS, 3)))
    play.to_broker(fetch(4, {}, session=(OURS, 3)))


def test_what_the_client_forgets_is_forgotten_and_may_come_back() -> None:
    story, play = opened()
    play.client(fetch(2, {}, session=(THEIRS, 1), forgotten=((HOT, 0), (COLD, 0))))
    play.to_broker(fetch(2, {}, session=(OURS, 1), forgotten=((HOT, 0), (COLD, 0))))
    play.broker(fetched(2, {}, session_id=OURS)).to_client(fetched(2, {}, session_id=THEIRS))
    story.quota.omit(1.0, 0)
    play.client(fetch(3, {(HOT, 0): 11, (COLD, 0): 33}, session=(THEIRS, 2)))
    play.to_broker(fetch(3, {(COLD, 0): 33}, session=(OURS, 2)))


def test_a_partition_in_both_lists_is_forgotten() -> None:
    _, play = opened()
    play.client(fetch(2, {(HOT, 0): 11}, session=(THEIRS, 1), forgotten=((HOT, 0),)))
    play.to_broker(fetch(2, {}, session=(OURS, 1), forgotten=((HOT, 0),)))


def test_a_bound_goes_with_the_partition_until_it_is_lifted() -> None:
    story, play = opened()
    story.quota.bounds[0] = 4000
    play.client(fetch(2, {}, session=(THEIRS, 1), min_bytes=9000))
    bound = {(HOT, 0): 4000}
    play.to_broker(fetch(2, {(HOT, 0): 10}, session=(OURS, 1), bounds=bound, min_bytes=4000))
    play.broker(fetched(2, {(HOT, 0): (75, BATCH)}, session_id=OURS))
    play.to_client(fetched(2, {(HOT, 0): (75, BATCH)}, session_id=THEIRS))
    play.client(fetch(3, {(HOT, 0): 11}, session=(THEIRS, 2)))
    play.to_broker(fetch(3, {(HOT, 0): 11}, session=(OURS, 2), bounds=bound))
    play.broker(fetched(3, {}, session_id=OURS)).to_client(fetched(3, {}, session_id=THEIRS))
    play.client(fetch(4, {}, session=(THEIRS, 3))).to_broker(fetch(4, {}, session=(OURS, 3)))
    play.broker(fetched(4, {}, session_id=OURS)).to_client(fetched(4, {}, session_id=THEIRS))
    del story.quota.bounds[0]
    play.client(fetch(5, {}, session=(THEIRS, 4)))
    play.to_broker(fetch(5, {(HOT, 0): 11}, session=(OURS, 4)))


def test_a_bound_fits_the_batch_of_which_only_a_part_came() -> None:
    story, play = opened()
    story.quota.bounds[0] = 150
    play.client(fetch(2, {}, session=(THEIRS, 1)))
    play.to_broker(fetch(2, {(HOT, 0): 10}, session=(OURS, 1), bounds={(HOT, 0): 150}))
    cut = record_batch(300)[:150]
    play.broker(fetched(2, {(COLD, 0): (71, BATCH), (HOT, 0): (75, cut)}, session_id=OURS))
    # The part of a batch is of no use, and does not reach the client.
    play.to_client(fetched(2, {(COLD, 0): (71, BATCH), (HOT, 0): (75, b"")}, session_id=THEIRS))
    play.client(fetch(3, {}, session=(THEIRS, 2)))
    play.to_broker(fetch(3, {(HOT, 0): 10}, session=(OURS, 2), bounds={(HOT, 0): 300}))


def test_of_a_session_that_would_be_empty_the_broker_hears_nothing_until_something_may_come() -> None:
    story, play = opened(partitions={(HOT, 0): 10, (HOT, 1): 20})
    story.quota.omit(0.2, 0)
    story.quota.omit(0.3, 1)
    play.client(fetch(2, {(HOT, 0): 11}, session=(THEIRS, 1)))
    play.to_broker().to_client().muted(0.2).busy()
    play.at(0.199).to_broker()
    play.at(0.2)
    # The rest of its time, and no longer than until the other may come as well.
    play.to_broker(
        fetch(2, {(HOT, 0): 11}, session=(OURS, 1), forgotten=((HOT, 1),), max_wait_ms=100)
    ).unmuted()
    play.broker(fetched(2, {}, session_id=OURS)).to_client(fetched(2, {}, session_id=THEIRS))


def test_a_fetch_of_which_nothing_is_left_is_answered_after_its_time_with_epochs_apart() -> None:
    story, play = opened(partitions={(HOT, 0): 10, (HOT, 1): 20})
    story.quota.omit(0.7, 0, 1)
    play.client(fetch(2, {(HOT, 0): 11}, session=(THEIRS, 1), forgotten=((HOT, 1),)))
    play.to_broker().muted(0.5)
    play.at(0.5).to_broker().to_client(fetched(2, {}, session_id=THEIRS)).idle()
    play.client(fetch(3, {(HOT, 0): 12, (COLD, 0): 31}, session=(THEIRS, 2)))
    # What the broker has missed: a forgotten partition, another added, one to forget for now.
    play.to_broker(
        fetch(3, {(COLD, 0): 31}, session=(OURS, 1), forgotten=((HOT, 0), (HOT, 1)), max_wait_ms=200)
    )
    play.broker(fetched(3, {}, session_id=OURS)).to_client(fetched(3, {}, session_id=THEIRS))
    play.at(0.7)
    play.client(fetch(4, {}, session=(THEIRS, 3))).to_broker(fetch(4, {(HOT, 0): 12}, session=(OURS, 2)))


def test_what_the_client_forgets_and_takes_back_without_the_brokers_knowing_is_still_omitted() -> None:
    story, play = opened(partitions={(HOT, 0): 10, (HOT, 1): 20})
    story.quota.omit(9.0, 0, 1)
    play.client(fetch(2, {}, session=(THEIRS, 1), forgotten=((HOT, 1),))).at(0.5)
    play.to_broker().to_client(fetched(2, {}, session_id=THEIRS))
    play.client(fetch(3, {(HOT, 1): 21, (COLD, 0): 1}, session=(THEIRS, 2)))
    play.to_broker(fetch(3, {(COLD, 0): 1}, session=(OURS, 1), forgotten=((HOT, 0), (HOT, 1))))


def test_a_quota_that_does_not_say_when_is_asked_again_with_the_next_fetch() -> None:
    story, play = opened(partitions={(HOT, 0): 10})
    story.quota.omit(9.0, 0)
    play.client(fetch(2, {}, session=(THEIRS, 1))).to_broker().muted(0.5)
    play.at(0.5).to_client(fetched(2, {}, session_id=THEIRS))


def test_no_busy_loop_where_a_quota_wants_to_be_asked_at_once() -> None:
    story, play = opened()
    story.quota.omit(0.0001, 0)
    play.client(fetch(2, {}, session=(THEIRS, 1)))
    play.to_broker(fetch(2, {}, session=(OURS, 1), forgotten=((HOT, 0),), max_wait_ms=10))


def test_no_wait_is_shortened_that_is_short_already() -> None:
    story, play = opened()
    story.quota.omit(0.1, 0)
    play.client(fetch(2, {}, session=(THEIRS, 1), max_wait_ms=20))
    play.to_broker(fetch(2, {}, session=(OURS, 1), forgotten=((HOT, 0),), max_wait_ms=20))


def test_epochs_start_again_at_one() -> None:
    story, play = opened(partitions={(HOT, 0): 10, (COLD, 0): 1})
    (session,) = present(story.fetches)._sessions.values()
    session.client_epoch = 2**31 - 1
    session.broker_epoch = 2**31 - 2
    for correlation_id, theirs, ours in [(2, 2**31 - 1, 2**31 - 2), (3, 1, 2**31 - 1), (4, 2, 1)]:
        play.client(fetch(correlation_id, {}, session=(THEIRS, theirs)))
        play.to_broker(fetch(correlation_id, {}, session=(OURS, ours)))
        play.broker(fetched(correlation_id, {}, session_id=OURS))
        play.to_client(fetched(correlation_id, {}, session_id=THEIRS))


def test_a_fetch_of_nothing_goes_to_the_broker() -> None:
    _, play = opened()
    play.client(fetch(2, {}, session=(THEIRS, -1))).to_broker(fetch(2, {}, session=(OURS, -1)))
    play.broker(fetched(2, {})).to_client(fetched(2, {})).idle()


def test_the_turn_moves_on_from_who_was_let_in() -> None:
    story, play = opened(partitions={(HOT, number): 1 for number in range(5)} | {(COLD, 0): 1})
    epoch = 1
    # Two are fetched under a bound, one is omitted: of the next plan, the one behind the two is the first.
    for most, first in [((0, 1), 0), ((2, 3), 2), ((4, 0), 4), ((1, 2), 1)]:
        story.quota.bounds.clear()
        story.quota.bounds.update(dict.fromkeys(most, 10))
        for number in range(5):
            story.quota.omit(0.0 if number in most else 9.0, number)
        play.client(fetch(epoch + 1, {}, session=(THEIRS, epoch)))
        play.relay.take_to_broker()
        play.broker(fetched(epoch + 1, {}, session_id=OURS))
        play.relay.take_to_client()
        assert story.quota.plans[-1][0] == first
        epoch += 1


def test_a_client_that_sends_ahead_waits_behind_the_fetch_that_waits() -> None:
    story, play = opened(partitions={(HOT, 0): 10, (COLD, 0): 1})
    play.client(fetch(2, {}, session=(THEIRS, 1), forgotten=((COLD, 0),)))
    play.to_broker(fetch(2, {}, session=(OURS, 1), forgotten=((COLD, 0),)))
    play.broker(fetched(2, {}, session_id=OURS)).to_client(fetched(2, {}, session_id=THEIRS))
    story.quota.omit(0.2, 0)
    play.client(fetch(3, {(HOT, 0): 11}, session=(THEIRS, 2)), fetch(4, {(HOT, 0): 12}, session=(THEIRS, 3)))
    play.to_broker().at(0.2)
    play.to_broker(
        fetch(3, {(HOT, 0): 11}, session=(OURS, 2), max_wait_ms=300),
        fetch(4, {(HOT, 0): 12}, session=(OURS, 3)),
    )


def test_a_drain_answers_the_fetch_that_waits() -> None:
    story, play = opened(partitions={(HOT, 0): 10})
    story.quota.omit(0.4, 0)
    play.client(fetch(2, {}, session=(THEIRS, 1))).busy()
    play.drain().to_client(fetched(2, {}, session_id=THEIRS)).to_broker().idle()


@pytest.mark.parametrize("version", [4, *SESSIONS])
@pytest.mark.parametrize("topic", [HOT, COLD])
def test_a_fetch_of_more_partitions_than_a_broker_has_ends_the_connection(version: int, topic: str) -> None:
    """Each costs time on the event loop, where others wait."""
    story = Story()
    many = dict.fromkeys([(topic, number) for number in range(MAX_PARTITIONS + 1)], 0)
    play = Playbook(story.relay)
    play.client_fails(fetch(1, many, version), reason=CLIENT_PROTOCOL_ERROR, says=str(MAX_PARTITIONS))
    assert story.quota.plans == []


def test_a_session_does_not_grow_beyond_the_partitions_of_a_fetch() -> None:
    _, play = opened()
    more = dict.fromkeys([(HOT, number) for number in range(MAX_PARTITIONS - 2)], 0)
    play.client(fetch(2, more, session=(THEIRS, 1))).at(UPDATED_SECONDS)
    play.broker(fetched(2, {}, session_id=OURS))
    play.client_fails(
        fetch(3, {(COLD, 1): 0, (COLD, 2): 0}, session=(THEIRS, 2)),
        reason=CLIENT_PROTOCOL_ERROR,
        says=str(MAX_PARTITIONS),
    )


def test_a_follower_may_fetch_more_partitions_than_a_consumer() -> None:
    many = dict.fromkeys([(COLD, number) for number in range(MAX_PARTITIONS + 1)], 0)
    story = Story(between_brokers=True)
    request = fetch(1, many, replica_id=2)
    Playbook(story.relay).client(request).to_broker(request)
