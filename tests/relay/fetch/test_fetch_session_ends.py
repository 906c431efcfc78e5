"""Fetch sessions that begin or end while quotas come and go: which are rejected, and which are taken over."""

import pytest

from proxy.relay.fetch.sessions import SESSION_MASK
from tests.support.stories.fetching import (
    ALL,
    BATCH,
    COLD,
    HOT,
    NOTHING_NEW,
    OURS,
    THEIRS,
    Story,
    fetch,
    fetched,
    opened,
)
from tests.support.stories.playbook import Playbook


@pytest.mark.parametrize("error_code", [70, 71, 106])
def test_an_error_of_the_brokers_ends_the_session(error_code: int) -> None:
    story, play = opened()
    play.client(fetch(2, {}, session=(THEIRS, 1))).to_broker(fetch(2, {}, session=(OURS, 1)))
    play.broker(fetched(2, {}, error_code=error_code)).to_client(fetched(2, {}, error_code=error_code))
    play.client(fetch(3, {}, session=(THEIRS, 2))).to_broker().to_client(fetched(3, {}, error_code=71))
    story.quota.omit(1.0, 1)
    # It is closed at the broker under the id that the broker knows.
    play.client(fetch(4, {(HOT, 0): 10, (COLD, 0): 30}, session=(THEIRS, 0)))
    play.to_broker(fetch(4, {(HOT, 0): 10, (COLD, 0): 30}, session=(OURS, 0)))


def test_a_session_that_the_broker_drops_is_over() -> None:
    _, play = opened()
    play.client(fetch(2, {}, session=(THEIRS, 1))).to_broker(fetch(2, {}, session=(OURS, 1)))
    play.broker(fetched(2, {})).to_client(fetched(2, {}))
    play.client(fetch(3, {(HOT, 0): 10}, session=(THEIRS, 2)))
    play.to_broker().to_client(fetched(3, {}, error_code=71))


@pytest.mark.parametrize("epoch", [2, 5])
def test_an_epoch_whose_turn_it_is_not_is_rejected_here(epoch: int) -> None:
    _, play = opened()
    play.client(fetch(2, {}, session=(THEIRS, epoch))).to_broker()
    play.to_client(fetched(2, {}, error_code=71))
    play.client(fetch(3, {}, session=(THEIRS, 1))).to_broker(fetch(3, {}, session=(OURS, 1)))


def test_a_session_of_another_version_is_rejected() -> None:
    _, play = opened(12)
    play.client(fetch(2, {}, 13, session=(THEIRS, 1))).to_broker().to_client(
        fetched(2, {}, 13, error_code=71)
    )


def test_a_session_from_before_the_quota_is_opened_anew_when_it_names_what_is_limited() -> None:
    story = Story()
    play = Playbook(story.relay)
    cold = fetch(1, {(COLD, 0): 5}, session=(0, 0))
    play.client(cold).to_broker(cold)
    play.broker(fetched(1, {(COLD, 0): (9, BATCH)}, session_id=OURS))
    play.to_client(fetched(1, {(COLD, 0): (9, BATCH)}, session_id=OURS))
    more = fetch(2, {(COLD, 1): 5}, session=(OURS, 1))
    play.client(more).to_broker(more).broker(fetched(2, {}, session_id=OURS))
    play.to_client(fetched(2, {}, session_id=OURS)).client(fetch(2, {(HOT, 0): 5}, session=(OURS, 2)))
    play.to_broker().to_client(fetched(2, {}, error_code=71))
    play.client(fetch(3, ALL, session=(OURS, 0))).to_broker(fetch(3, ALL, session=(OURS, 0)))
    play.broker(fetched(3, NOTHING_NEW, session_id=77)).to_client(
        fetched(3, NOTHING_NEW, session_id=77 ^ SESSION_MASK)
    )


@pytest.mark.parametrize("session_id", [OURS, THEIRS, 4711])
def test_the_session_of_another_connection_is_rejected(session_id: int) -> None:
    """It may have any partition, and no quota would omit it: OURS is the broker's id of such a session."""
    story, _ = opened()
    story.connect()
    play = Playbook(story.relay)
    play.client(fetch(2, {}, session=(session_id, 1))).to_broker().to_client(fetched(2, {}, error_code=71))


def test_the_brokers_id_of_the_own_session_is_rejected() -> None:
    _, play = opened()
    play.client(fetch(2, {}, session=(OURS, 1))).to_broker().to_client(fetched(2, {}, error_code=71))


def test_a_session_is_free_no_more_when_a_quota_comes_for_its_partitions() -> None:
    story = Story()
    story.quota.topics = set()
    play = Playbook(story.relay)
    hot = fetch(1, {(HOT, 0): 5}, session=(0, 0))
    play.client(hot).to_broker(hot).broker(fetched(1, {(HOT, 0): (9, BATCH)}, session_id=OURS))
    play.to_client(fetched(1, {(HOT, 0): (9, BATCH)}, session_id=OURS))
    nothing = fetch(2, {}, session=(OURS, 1))
    play.client(nothing).to_broker(nothing).broker(fetched(2, {}, session_id=OURS))
    play.to_client(fetched(2, {}, session_id=OURS))
    story.quota.topics = {HOT}
    story.new_limits()
    play.client(fetch(3, {}, session=(OURS, 2))).to_broker().to_client(fetched(3, {}, error_code=71))


def test_a_removed_quota_puts_back_what_it_omitted() -> None:
    story, play = opened()
    story.quota.omit(9.0, 0)
    play.client(fetch(2, {}, session=(THEIRS, 1)))
    play.to_broker(fetch(2, {}, session=(OURS, 1), forgotten=((HOT, 0),)))
    play.broker(fetched(2, {}, session_id=OURS)).to_client(fetched(2, {}, session_id=THEIRS))
    story.quota.omits = False
    story.new_limits()
    play.client(fetch(3, {}, session=(THEIRS, 2))).to_broker(fetch(3, {(HOT, 0): 10}, session=(OURS, 2)))
    play.broker(fetched(3, {}, session_id=OURS)).to_client(fetched(3, {}, session_id=THEIRS))
    play.client(fetch(4, {}, session=(THEIRS, -1))).to_broker(fetch(4, {}, session=(OURS, -1)))
    play.broker(fetched(4, {})).to_client(fetched(4, {}))
    other = fetch(5, {(HOT, 0): 5}, session=(OURS, 8))
    play.client(other).to_broker(other)
    assert story.fetches is None


def test_a_quota_that_comes_again_holds_again() -> None:
    story, play = opened()
    story.quota.omits = False
    story.new_limits()
    story.quota.omit(9.0, 0)
    play.client(fetch(2, {}, session=(THEIRS, 1))).to_broker(fetch(2, {}, session=(OURS, 1)))
    play.broker(fetched(2, {}, session_id=OURS)).to_client(fetched(2, {}, session_id=THEIRS))
    story.quota.omits = True
    story.new_limits()
    play.client(fetch(3, {}, session=(THEIRS, 2)))
    play.to_broker(fetch(3, {}, session=(OURS, 2), forgotten=((HOT, 0),)))
