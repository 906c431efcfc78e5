"""Partitions that quotas hold back stay out of fetches, and their clients do not notice (KIP-227)."""

from dataclasses import replace

import pytest

from proxy.relay.errors import CLIENT_PROTOCOL_ERROR
from proxy.relay.fetches import SESSION_MASK
from tests.support.exchanges import record_batch
from tests.support.fetching import COLD, HOT, MAX_BYTES, Story, fetch, fetched
from tests.support.messages import read_frame, response_type, versions
from tests.support.playbook import Playbook

OURS = 12345
"""The broker's id of the session, and the client's."""
THEIRS = OURS ^ SESSION_MASK
BATCH = record_batch(100)
ALL = {(HOT, 0): 10, (HOT, 1): 20, (COLD, 0): 30}
NOTHING_NEW = dict.fromkeys(ALL, (70, b""))
SESSIONS = [7, 9, 11, 12, 13, 17, 18]
SESSIONLESS = [version for version in versions(1) if version < 7]


def opened(version=12, partitions=ALL):
    """A story whose client has opened a session, before anything was held."""
    story = Story()
    told = dict.fromkeys(partitions, (70, b""))
    play = Playbook(story.relay)
    play.client(fetch(1, partitions, version, session=(0, 0)))
    play.to_broker(fetch(1, partitions, version, session=(0, 0)))
    play.broker(fetched(1, told, version, session_id=OURS))
    play.to_client(fetched(1, told, version, session_id=THEIRS))
    return story, play


@pytest.mark.parametrize("version", SESSIONS)
def test_a_held_partition_is_forgotten_and_comes_back_as_the_client_left_it(version):
    story, play = opened(version)
    story.quota.hold(1.0, 0)
    play.client(fetch(2, {(COLD, 0): 31}, version, session=(THEIRS, 1)))
    play.to_broker(fetch(2, {(COLD, 0): 31}, version, session=(OURS, 1), forgotten=((HOT, 0),)))
    play.broker(fetched(2, {(COLD, 0): (71, BATCH)}, version, session_id=OURS))
    play.to_client(fetched(2, {(COLD, 0): (71, BATCH)}, version, session_id=THEIRS))
    # The client moves it while it is held: the broker does not hear of it.
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


def test_what_the_client_forgets_while_it_is_held_does_not_come_back():
    story, play = opened()
    story.quota.hold(1.0, 0)
    play.client(fetch(2, {}, session=(THEIRS, 1)))
    play.to_broker(fetch(2, {}, session=(OURS, 1), forgotten=((HOT, 0),)))
    play.broker(fetched(2, {}, session_id=OURS)).to_client(fetched(2, {}, session_id=THEIRS))
    play.client(fetch(3, {}, session=(THEIRS, 2), forgotten=((HOT, 0),)))
    play.to_broker(fetch(3, {}, session=(OURS, 2)))
    play.broker(fetched(3, {}, session_id=OURS)).to_client(fetched(3, {}, session_id=THEIRS))
    play.at(1.0)
    play.client(fetch(4, {}, session=(THEIRS, 3)))
    play.to_broker(fetch(4, {}, session=(OURS, 3)))


def test_what_the_client_forgets_is_forgotten_and_may_come_back():
    story, play = opened()
    play.client(fetch(2, {}, session=(THEIRS, 1), forgotten=((HOT, 0), (COLD, 0))))
    play.to_broker(fetch(2, {}, session=(OURS, 1), forgotten=((HOT, 0), (COLD, 0))))
    play.broker(fetched(2, {}, session_id=OURS)).to_client(fetched(2, {}, session_id=THEIRS))
    story.quota.hold(1.0, 0)
    play.client(fetch(3, {(HOT, 0): 11, (COLD, 0): 33}, session=(THEIRS, 2)))
    play.to_broker(fetch(3, {(COLD, 0): 33}, session=(OURS, 2)))


def test_a_partition_in_both_lists_is_forgotten():
    _, play = opened()
    play.client(fetch(2, {(HOT, 0): 11}, session=(THEIRS, 1), forgotten=((HOT, 0),)))
    play.to_broker(fetch(2, {}, session=(OURS, 1), forgotten=((HOT, 0),)))


def test_a_bound_goes_with_the_partition_until_it_is_lifted():
    story, play = opened()
    story.quota.most[0] = 4000
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
    del story.quota.most[0]
    play.client(fetch(5, {}, session=(THEIRS, 4)))
    play.to_broker(fetch(5, {(HOT, 0): 11}, session=(OURS, 4)))


def test_a_bound_fits_the_batch_of_which_only_a_part_came():
    story, play = opened()
    story.quota.most[0] = 150
    play.client(fetch(2, {}, session=(THEIRS, 1)))
    play.to_broker(fetch(2, {(HOT, 0): 10}, session=(OURS, 1), bounds={(HOT, 0): 150}))
    cut = record_batch(300)[:150]
    play.broker(fetched(2, {(COLD, 0): (71, BATCH), (HOT, 0): (75, cut)}, session_id=OURS))
    # The part of a batch is of no use, and does not reach the client.
    play.to_client(fetched(2, {(COLD, 0): (71, BATCH), (HOT, 0): (75, b"")}, session_id=THEIRS))
    play.client(fetch(3, {}, session=(THEIRS, 2)))
    play.to_broker(fetch(3, {(HOT, 0): 10}, session=(OURS, 2), bounds={(HOT, 0): 300}))


def test_of_a_session_that_would_be_empty_the_broker_hears_nothing_until_something_may_come():
    story, play = opened(partitions={(HOT, 0): 10, (HOT, 1): 20})
    story.quota.hold(0.2, 0)
    story.quota.hold(0.3, 1)
    play.client(fetch(2, {(HOT, 0): 11}, session=(THEIRS, 1)))
    play.to_broker().to_client().muted(0.2).busy()
    play.at(0.199).to_broker()
    play.at(0.2)
    # The rest of its time, and no longer than until the other may come as well.
    play.to_broker(
        fetch(2, {(HOT, 0): 11}, session=(OURS, 1), forgotten=((HOT, 1),), max_wait_ms=100)
    ).unmuted()
    play.broker(fetched(2, {}, session_id=OURS)).to_client(fetched(2, {}, session_id=THEIRS))


def test_a_fetch_of_which_nothing_is_left_is_answered_after_its_time_with_epochs_apart():
    story, play = opened(partitions={(HOT, 0): 10, (HOT, 1): 20})
    story.quota.hold(0.7, 0, 1)
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


def test_what_the_client_forgets_and_takes_back_without_the_brokers_knowing_is_still_held():
    story, play = opened(partitions={(HOT, 0): 10, (HOT, 1): 20})
    story.quota.hold(9.0, 0, 1)
    play.client(fetch(2, {}, session=(THEIRS, 1), forgotten=((HOT, 1),))).at(0.5)
    play.to_broker().to_client(fetched(2, {}, session_id=THEIRS))
    play.client(fetch(3, {(HOT, 1): 21, (COLD, 0): 1}, session=(THEIRS, 2)))
    play.to_broker(fetch(3, {(COLD, 0): 1}, session=(OURS, 1), forgotten=((HOT, 0), (HOT, 1))))


def test_a_quota_that_does_not_say_when_is_asked_again_with_the_next_fetch():
    story, play = opened(partitions={(HOT, 0): 10})
    story.quota.hold(9.0, 0)
    play.client(fetch(2, {}, session=(THEIRS, 1))).to_broker().muted(0.5)
    play.at(0.5).to_client(fetched(2, {}, session_id=THEIRS))


def test_no_busy_loop_where_a_quota_wants_to_be_asked_at_once():
    story, play = opened()
    story.quota.hold(0.0001, 0)
    play.client(fetch(2, {}, session=(THEIRS, 1)))
    play.to_broker(fetch(2, {}, session=(OURS, 1), forgotten=((HOT, 0),), max_wait_ms=10))


def test_no_wait_is_shortened_that_is_short_already():
    story, play = opened()
    story.quota.hold(0.1, 0)
    play.client(fetch(2, {}, session=(THEIRS, 1), max_wait_ms=20))
    play.to_broker(fetch(2, {}, session=(OURS, 1), forgotten=((HOT, 0),), max_wait_ms=20))


def test_epochs_start_again_at_one():
    story, play = opened(partitions={(HOT, 0): 10, (COLD, 0): 1})
    (session,) = story.relay._requests._held._fetches._sessions.values()
    session.client_epoch = 2**31 - 1
    session.broker_epoch = 2**31 - 2
    for correlation_id, theirs, ours in [(2, 2**31 - 1, 2**31 - 2), (3, 1, 2**31 - 1), (4, 2, 1)]:
        play.client(fetch(correlation_id, {}, session=(THEIRS, theirs)))
        play.to_broker(fetch(correlation_id, {}, session=(OURS, ours)))
        play.broker(fetched(correlation_id, {}, session_id=OURS))
        play.to_client(fetched(correlation_id, {}, session_id=THEIRS))


@pytest.mark.parametrize("version", [7, 12, 13])
def test_who_opens_a_session_sees_all_partitions(version):
    story = Story()
    story.quota.hold(1.0, 0, 1)
    play = Playbook(story.relay)
    play.client(fetch(1, ALL, version, session=(0, 0)))
    # Nothing is known of what is held: the broker is asked for it, without records.
    none = {(HOT, 0): 0, (HOT, 1): 0}
    play.to_broker(fetch(1, ALL, version, session=(0, 0), bounds=none))
    play.broker(fetched(1, NOTHING_NEW, version, session_id=OURS))
    play.to_client(fetched(1, NOTHING_NEW, version, session_id=THEIRS))
    play.client(fetch(2, {}, version, session=(THEIRS, 1)))
    play.to_broker(fetch(2, {}, version, session=(OURS, 1), forgotten=((HOT, 0), (HOT, 1))))
    play.broker(fetched(2, {}, version, session_id=OURS)).to_client(
        fetched(2, {}, version, session_id=THEIRS)
    )
    # It opens another: what is held has been heard of, and is not asked for. It comes first in the answer.
    play.client(fetch(3, ALL, version, session=(THEIRS, 0)))
    play.to_broker(fetch(3, {(COLD, 0): 30}, version, session=(OURS, 0)))
    play.broker(fetched(3, {(COLD, 0): (71, BATCH)}, version, session_id=OURS + 1))
    told = {(HOT, 0): (70, b""), (HOT, 1): (70, b""), (COLD, 0): (71, BATCH)}
    play.to_client(fetched(3, told, version, session_id=(OURS + 1) ^ SESSION_MASK))
    play.at(1.0)
    play.client(fetch(4, {}, version, session=((OURS + 1) ^ SESSION_MASK, 1)))
    play.to_broker(fetch(4, {(HOT, 0): 10, (HOT, 1): 20}, version, session=(OURS + 1, 1)))


def test_a_watermark_of_another_leader_epoch_is_not_told():
    story, play = opened()
    story.quota.hold(1.0, 0)
    play.client(fetch(2, ALL, session=(THEIRS, 0), leader_epoch=4))
    play.to_broker(fetch(2, ALL, session=(OURS, 0), leader_epoch=4, bounds={(HOT, 0): 0}))


@pytest.mark.parametrize("version", [*SESSIONLESS, 7, 11, 12, 13, 18])
def test_outside_a_session_too(version):
    story = Story()
    play = Playbook(story.relay)
    play.client(fetch(1, ALL, version)).to_broker(fetch(1, ALL, version))
    play.broker(fetched(1, NOTHING_NEW, version)).to_client(fetched(1, NOTHING_NEW, version))
    story.quota.hold(1.0, 1)
    play.client(fetch(2, ALL, version)).to_broker(fetch(2, {(HOT, 0): 10, (COLD, 0): 30}, version))
    rest = {(HOT, 0): (71, BATCH), (COLD, 0): (72, b"")}
    play.broker(fetched(2, rest, version))
    got = read_frame(response_type(1, version), b"".join(story.relay.take_to_client()))
    first, last = (read_frame(type(got), fetched(2, told, version)) for told in ({(HOT, 1): (70, b"")}, rest))
    assert got == replace(last, responses=first.responses + last.responses)


def test_outside_a_session_all_may_be_held():
    story = Story()
    play = Playbook(story.relay)
    hot = {(HOT, 0): 10, (HOT, 1): 20}
    told = {(HOT, 0): (70, b""), (HOT, 1): (70, b"")}
    play.client(fetch(1, hot)).to_broker(fetch(1, hot)).broker(fetched(1, told)).to_client(fetched(1, told))
    story.quota.hold(0.7, 0, 1)
    play.client(fetch(2, hot)).to_broker().muted(0.5)
    play.at(0.5).to_client(fetched(2, told)).to_broker()
    play.client(fetch(3, hot)).at(0.7).to_broker(fetch(3, hot, max_wait_ms=300))


def test_a_fetch_of_nothing_goes_to_the_broker():
    _, play = opened()
    play.client(fetch(2, {}, session=(THEIRS, -1))).to_broker(fetch(2, {}, session=(OURS, -1)))
    play.broker(fetched(2, {})).to_client(fetched(2, {})).idle()


def test_a_throttled_answer_to_a_full_request_stays_empty():
    story, play = opened()
    story.quota.hold(1.0, 0)
    play.client(fetch(2, ALL, session=(THEIRS, 0)))
    play.to_broker(fetch(2, {(HOT, 1): 20, (COLD, 0): 30}, session=(OURS, 0)))
    play.broker(fetched(2, {}, throttle_ms=100)).to_client(fetched(2, {}, throttle_ms=100))


@pytest.mark.parametrize("error_code", [70, 71, 106])
def test_an_error_of_the_brokers_ends_the_session(error_code):
    story, play = opened()
    play.client(fetch(2, {}, session=(THEIRS, 1))).to_broker(fetch(2, {}, session=(OURS, 1)))
    play.broker(fetched(2, {}, error_code=error_code)).to_client(fetched(2, {}, error_code=error_code))
    play.client(fetch(3, {}, session=(THEIRS, 2))).to_broker().to_client(fetched(3, {}, error_code=71))
    story.quota.hold(1.0, 1)
    # It is closed at the broker under the id that the broker knows.
    play.client(fetch(4, {(HOT, 0): 10, (COLD, 0): 30}, session=(THEIRS, 0)))
    play.to_broker(fetch(4, {(HOT, 0): 10, (COLD, 0): 30}, session=(OURS, 0)))


def test_a_session_that_the_broker_drops_is_over():
    _, play = opened()
    play.client(fetch(2, {}, session=(THEIRS, 1))).to_broker(fetch(2, {}, session=(OURS, 1)))
    play.broker(fetched(2, {})).to_client(fetched(2, {}))
    play.client(fetch(3, {(HOT, 0): 10}, session=(THEIRS, 2)))
    play.to_broker().to_client(fetched(3, {}, error_code=71))


@pytest.mark.parametrize("epoch", [2, 5])
def test_an_epoch_whose_turn_it_is_not_is_refused_here(epoch):
    _, play = opened()
    play.client(fetch(2, {}, session=(THEIRS, epoch))).to_broker()
    play.to_client(fetched(2, {}, error_code=71))
    play.client(fetch(3, {}, session=(THEIRS, 1))).to_broker(fetch(3, {}, session=(OURS, 1)))


def test_a_session_of_another_version_is_refused():
    _, play = opened(12)
    play.client(fetch(2, {}, 13, session=(THEIRS, 1))).to_broker().to_client(
        fetched(2, {}, 13, error_code=71)
    )


def test_a_session_from_before_the_quota_is_opened_anew_when_it_names_what_is_limited():
    story = Story()
    play = Playbook(story.relay)
    cold = fetch(1, {(COLD, 0): 5}, session=(OURS, 7))
    play.client(cold).to_broker(cold)
    play.broker(fetched(1, {(COLD, 0): (9, BATCH)}, session_id=OURS))
    play.to_client(fetched(1, {(COLD, 0): (9, BATCH)}, session_id=OURS))
    play.client(fetch(2, {(HOT, 0): 5}, session=(OURS, 8)))
    play.to_broker().to_client(fetched(2, {}, error_code=71))
    play.client(fetch(3, ALL, session=(OURS, 0))).to_broker(fetch(3, ALL, session=(OURS, 0)))
    play.broker(fetched(3, NOTHING_NEW, session_id=77)).to_client(
        fetched(3, NOTHING_NEW, session_id=77 ^ SESSION_MASK)
    )


def test_fetches_that_no_quota_is_about_pass_as_they_are():
    story = Story()
    play = Playbook(story.relay)
    request = fetch(1, {(COLD, 0): 5}, session=(0, 0))
    answer = fetched(1, {(COLD, 0): (9, BATCH)}, session_id=OURS)
    play.client(request).to_broker(request).broker(answer).to_client(answer)
    assert story.quota.plans == []


def test_a_quota_that_goes_puts_back_what_it_held():
    story, play = opened()
    story.quota.hold(9.0, 0)
    play.client(fetch(2, {}, session=(THEIRS, 1)))
    play.to_broker(fetch(2, {}, session=(OURS, 1), forgotten=((HOT, 0),)))
    play.broker(fetched(2, {}, session_id=OURS)).to_client(fetched(2, {}, session_id=THEIRS))
    story.quota.holds_fetches = False
    story.new_limits()
    play.client(fetch(3, {}, session=(THEIRS, 2))).to_broker(fetch(3, {(HOT, 0): 10}, session=(OURS, 2)))
    play.broker(fetched(3, {}, session_id=OURS)).to_client(fetched(3, {}, session_id=THEIRS))
    play.client(fetch(4, {}, session=(THEIRS, -1))).to_broker(fetch(4, {}, session=(OURS, -1)))
    play.broker(fetched(4, {})).to_client(fetched(4, {}))
    other = fetch(5, {(HOT, 0): 5}, session=(OURS, 8))
    play.client(other).to_broker(other)
    assert story.relay._requests._held._fetches is None


def test_a_quota_that_comes_again_holds_again():
    story, play = opened()
    story.quota.holds_fetches = False
    story.new_limits()
    story.quota.hold(9.0, 0)
    play.client(fetch(2, {}, session=(THEIRS, 1))).to_broker(fetch(2, {}, session=(OURS, 1)))
    play.broker(fetched(2, {}, session_id=OURS)).to_client(fetched(2, {}, session_id=THEIRS))
    story.quota.holds_fetches = True
    story.new_limits()
    play.client(fetch(3, {}, session=(THEIRS, 2)))
    play.to_broker(fetch(3, {}, session=(OURS, 2), forgotten=((HOT, 0),)))


def test_a_topic_whose_name_is_not_known_yet_is_not_held():
    story = Story()
    story.names.hidden.add(HOT)
    story.quota.hold(9.0, 0, 1)
    play = Playbook(story.relay)
    request = fetch(1, ALL, 13, session=(0, 0))
    answer = fetched(1, NOTHING_NEW, 13, session_id=OURS)
    play.client(request).to_broker(request).broker(answer).to_client(answer)
    story.names.hidden.clear()
    play.client(fetch(2, {(HOT, 0): 1}, 13, session=(OURS, 1)))
    play.to_broker().to_client(fetched(2, {}, 13, error_code=71))


def test_a_name_that_becomes_known_in_a_session_makes_its_partitions_concern_the_quota():
    story = Story()
    play = Playbook(story.relay)
    play.client(fetch(1, {(HOT, 0): 1}, 13, session=(0, 0))).to_broker(
        fetch(1, {(HOT, 0): 1}, 13, session=(0, 0))
    )
    play.broker(fetched(1, {(HOT, 0): (5, b"")}, 13, session_id=OURS))
    play.to_client(fetched(1, {(HOT, 0): (5, b"")}, 13, session_id=THEIRS))
    story.names.hidden.add(COLD)
    play.client(fetch(2, {(COLD, 0): 1}, 13, session=(THEIRS, 1))).to_broker(
        fetch(2, {(COLD, 0): 1}, 13, session=(OURS, 1))
    )
    story.names.hidden.clear()
    (session,) = story.relay._requests._held._fetches._sessions.values()
    assert len(session._unnamed) == 1
    play.broker(fetched(2, {}, 13, session_id=OURS)).to_client(fetched(2, {}, 13, session_id=THEIRS))
    play.client(fetch(3, {}, 13, session=(THEIRS, 2))).to_broker(fetch(3, {}, 13, session=(OURS, 2)))
    assert len(session._unnamed) == 0


def test_the_turn_moves_on_from_who_was_let_in():
    story, play = opened(partitions={(HOT, number): 1 for number in range(5)} | {(COLD, 0): 1})
    epoch = 1
    # Two are let in under a bound, one is held: of the next plan, the one behind the two is the first.
    for most, first in [((0, 1), 0), ((2, 3), 2), ((4, 0), 4), ((1, 2), 1)]:
        story.quota.most.clear()
        story.quota.most.update(dict.fromkeys(most, 10))
        for number in range(5):
            story.quota.hold(0.0 if number in most else 9.0, number)
        play.client(fetch(epoch + 1, {}, session=(THEIRS, epoch)))
        play.relay.take_to_broker()
        play.broker(fetched(epoch + 1, {}, session_id=OURS))
        play.relay.take_to_client()
        assert story.quota.plans[-1][0] == first
        epoch += 1


def test_a_large_fetch_is_read_whole():
    partitions = {(HOT, number): 1 for number in range(40_000)}
    story = Story()
    play = Playbook(story.relay)
    request = fetch(1, partitions, session=(0, 0))
    assert len(request) > 1 << 20
    play.client(request[: 1 << 20]).to_broker().client(request[1 << 20 :]).to_broker(request)
    answer = fetched(1, {(HOT, 0): (5, b""), (HOT, 39_999): (6, b"")}, session_id=OURS)
    play.broker(answer)
    play.relay.take_to_client()
    story.quota.hold(1.0, 39_999)
    play.client(fetch(2, {}, session=(THEIRS, 1)))
    play.to_broker(fetch(2, {}, session=(OURS, 1), forgotten=((HOT, 39_999),)))


def test_a_large_answer_is_learned_from_as_it_passes():
    story = Story()
    play = Playbook(story.relay)
    play.client(fetch(1, ALL)).to_broker(fetch(1, ALL))
    large = {(HOT, 0): (70, bytes(2 << 20)), (HOT, 1): (71, b""), (COLD, 0): (72, bytes(5000))}
    answer = fetched(1, large)
    play.broker(*[answer[at : at + 100_000] for at in range(0, len(answer), 100_000)]).to_client(answer)
    story.quota.hold(9.0, 0, 1)
    play.client(fetch(2, ALL)).to_broker(fetch(2, {(COLD, 0): 30}))
    large = fetched(2, {(COLD, 0): (72, bytes(2 << 20))})
    play.broker(large[:100_000])
    play.broker(*[large[at : at + 100_000] for at in range(100_000, len(large), 100_000)])
    told = {(HOT, 0): (70, b""), (HOT, 1): (71, b""), (COLD, 0): (72, bytes(2 << 20))}
    play.to_client(fetched(2, told)).idle()


def test_a_client_that_sends_ahead_waits_behind_the_fetch_that_waits():
    story, play = opened(partitions={(HOT, 0): 10, (COLD, 0): 1})
    play.client(fetch(2, {}, session=(THEIRS, 1), forgotten=((COLD, 0),)))
    play.to_broker(fetch(2, {}, session=(OURS, 1), forgotten=((COLD, 0),)))
    play.broker(fetched(2, {}, session_id=OURS)).to_client(fetched(2, {}, session_id=THEIRS))
    story.quota.hold(0.2, 0)
    play.client(fetch(3, {(HOT, 0): 11}, session=(THEIRS, 2)), fetch(4, {(HOT, 0): 12}, session=(THEIRS, 3)))
    play.to_broker().at(0.2)
    play.to_broker(
        fetch(3, {(HOT, 0): 11}, session=(OURS, 2), max_wait_ms=300),
        fetch(4, {(HOT, 0): 12}, session=(OURS, 3)),
    )


def test_a_drain_answers_the_fetch_that_waits():
    story, play = opened(partitions={(HOT, 0): 10})
    story.quota.hold(0.4, 0)
    play.client(fetch(2, {}, session=(THEIRS, 1))).busy()
    play.drain().to_client(fetched(2, {}, session_id=THEIRS)).to_broker().idle()


def test_a_fetch_that_does_not_parse_ends_the_connection():
    story = Story()
    request = fetch(1, ALL)
    cut = (len(request) - 14).to_bytes(4, "big") + request[4:-10]
    Playbook(story.relay).client_fails(
        cut, reason=CLIENT_PROTOCOL_ERROR, says="nothing is there|bytes wanted|a length"
    )
