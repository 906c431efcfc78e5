"""Consumers that fetch topics by ids whose names are not known yet: they wait while the cluster is asked."""

import pytest

from proxy.relay.fetch.gated_fetch import NAMES_SECONDS
from proxy.relay.fetch.sessions import LEAST_WAIT_SECONDS
from tests.support.present import present
from tests.support.stories.fetching import ALL, COLD, HOT, NOTHING_NEW, OURS, THEIRS, Story, fetch, fetched
from tests.support.stories.playbook import Playbook

ASKED = fetch(1, ALL, 13, session=(0, 0))
TOLD = fetched(1, NOTHING_NEW, 13, session_id=OURS)
TOLD_CLIENT = fetched(1, NOTHING_NEW, 13, session_id=THEIRS)


@pytest.fixture
def story() -> Story:
    """The name of HOT is on its way; two of its partitions are omitted."""
    story = Story()
    story.names.hidden.add(HOT)
    story.names.awaited.add(HOT)
    story.quota.omit(9.0, 0, 1)
    return story


def test_a_fetch_waits_for_a_name_and_is_then_omitted(story: Story) -> None:
    play = Playbook(story.relay)
    play.client(ASKED).to_broker().timer(LEAST_WAIT_SECONDS)
    play.at(5 * LEAST_WAIT_SECONDS).to_broker()
    story.names.hidden.clear()
    story.names.awaited.clear()
    # To ask for the watermarks would bring a batch: it waits for as long as it lets a broker wait.
    play.at(0.49).to_broker().to_client().at(0.5).to_broker()
    play.to_client(fetched(1, {}, 13, throttle_ms=8500))


def test_it_waits_in_a_session_too(story: Story) -> None:
    play = Playbook(story.relay)
    story.names.hidden.clear()
    play.client(fetch(1, {(HOT, 2): 1}, 13, session=(0, 0))).to_broker(
        fetch(1, {(HOT, 2): 1}, 13, session=(0, 0))
    )
    play.broker(fetched(1, {(HOT, 2): (5, b"")}, 13, session_id=OURS))
    play.to_client(fetched(1, {(HOT, 2): (5, b"")}, 13, session_id=THEIRS))
    story.names.hidden.add(COLD)
    story.names.awaited.add(COLD)
    play.client(fetch(2, {(COLD, 0): 1}, 13, session=(THEIRS, 1))).to_broker()
    story.names.hidden.clear()
    story.names.awaited.clear()
    play.at(LEAST_WAIT_SECONDS)
    play.to_broker(fetch(2, {(COLD, 0): 1}, 13, session=(OURS, 1), max_wait_ms=490))


def test_it_does_not_wait_for_ever(story: Story) -> None:
    play = Playbook(story.relay)
    play.client(ASKED)
    play.at(NAMES_SECONDS - 0.001).to_broker().at(NAMES_SECONDS)
    play.to_broker(fetch(1, ALL, 13, session=(0, 0), max_wait_ms=0))


def test_a_name_that_the_cluster_does_not_know_is_not_waited_for(story: Story) -> None:
    """Omitted partitions are known as soon as the name is: no client has to open another session."""
    story.names.awaited.clear()
    play = Playbook(story.relay)
    play.client(ASKED).to_broker(ASKED).broker(TOLD).to_client(TOLD_CLIENT)
    story.names.hidden.clear()
    play.client(fetch(2, {(HOT, 0): 1, (COLD, 0): 31}, 13, session=(THEIRS, 1)))
    forgotten = ((HOT, 1), (HOT, 0))
    play.to_broker(fetch(2, {(COLD, 0): 31}, 13, session=(OURS, 1), forgotten=forgotten))


def test_a_session_from_before_the_quota_that_names_an_unknown_topic_is_opened_anew(story: Story) -> None:
    play = Playbook(story.relay)
    play.client(fetch(1, {(HOT, 0): 1}, 13, session=(OURS, 1)))
    play.to_broker().to_client(fetched(1, {}, 13, error_code=71))


def test_a_follower_never_waits() -> None:
    story = Story(between_brokers=True)
    story.names.hidden.add(HOT)
    story.names.awaited.add(HOT)
    play = Playbook(story.relay)
    asked = fetch(1, ALL, 17, session=(0, 0), replica_id=2)
    play.client(asked).to_broker(asked)


def test_a_name_that_becomes_known_in_a_session_makes_its_partitions_concern_the_quota() -> None:
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
    (session,) = present(story.fetches)._sessions.values()
    assert len(session._unnamed) == 1
    play.broker(fetched(2, {}, 13, session_id=OURS)).to_client(fetched(2, {}, 13, session_id=THEIRS))
    play.client(fetch(3, {}, 13, session=(THEIRS, 2))).to_broker(fetch(3, {}, 13, session=(OURS, 2)))
    assert len(session._unnamed) == 0
