"""Who is a follower: only where brokers ask each other, and by the id that the request gives."""

from dataclasses import dataclass, field

import pytest

from proxy.quota.verdict import PASS
from proxy.relay.fetches import SESSION_MASK
from tests.support.exchanges import record_batch
from tests.support.fetching import COLD, HOT, Holding, Story, fetch, fetched
from tests.support.messages import versions
from tests.support.playbook import Playbook

ASKED = {(HOT, 0): 10}
TOLD = {(HOT, 0): (70, record_batch(100))}
CONSUMER = -1
OURS = 77
"""A session's id, as the broker knows it, and as its client does."""
THEIRS = OURS ^ SESSION_MASK
NOTHING = {(COLD, 0): (5, b"")}


@dataclass
class Seen:
    """Which replica ids the quota was told."""

    planned: list[int] = field(default_factory=list)
    charged: list[tuple[int, int]] = field(default_factory=list)
    """With the bytes that came."""


class Watching(Holding):
    def __init__(self, seen):
        super().__init__()
        self.told = seen
        self.item_api_keys = (1,)

    def hold_fetch(self, plan, who, now):
        self.told.planned.append(plan.replica_id)
        super().hold_fetch(plan, who, now)

    def charge(self, request, response, who, now):
        self.told.charged.append((request.replica_id, sum(item.size for item in response.items)))
        return PASS


def seen(version, between_brokers, replica_id):
    """What a quota sees of one fetch, which passes unchanged."""
    found = Seen()
    story = Story(Watching(found), between_brokers=between_brokers)
    asked = fetch(1, ASKED, version, replica_id=replica_id)
    told = fetched(1, TOLD, version)
    Playbook(story.relay).client(asked).to_broker(asked).broker(told).to_client(told).idle()
    return found


@pytest.mark.parametrize("version", versions(1))
def test_a_follower_is_known_by_its_id(version):
    assert seen(version, True, 2) == Seen([2], [(2, 100)])


@pytest.mark.parametrize("version", versions(1))
def test_a_forged_id_is_a_consumers(version):
    assert seen(version, False, 2) == Seen([CONSUMER], [(CONSUMER, 100)])


@pytest.mark.parametrize("version", [12, 17])
def test_a_consumer_among_brokers_is_one(version):
    assert seen(version, True, CONSUMER) == Seen([CONSUMER], [(CONSUMER, 100)])


@pytest.mark.parametrize("version", [12, 17])
def test_a_throttle_that_comes_while_a_follower_fetches_finds_its_session_taken_over(version):
    """Nothing is refused, so the in-sync replicas of the same connection notice nothing of it."""
    story = Story(between_brokers=True)
    story.quota.holds_fetches = False
    story.new_limits()
    cold = {(COLD, 0): 5}
    play = Playbook(story.relay)
    opens = fetch(1, cold, version, session=(0, 0), replica_id=2)
    play.client(opens).to_broker(opens)
    play.broker(fetched(1, NOTHING, version, session_id=OURS))
    play.to_client(fetched(1, NOTHING, version, session_id=THEIRS))
    story.quota.holds_fetches = True
    story.quota.hold(9.0, 0)
    story.new_limits()
    play.client(fetch(2, {(HOT, 0): 10, (COLD, 0): 6}, version, session=(THEIRS, 1), replica_id=2))
    play.to_broker(fetch(2, {(COLD, 0): 6}, version, session=(OURS, 1), replica_id=2))
    told = {(COLD, 0): (70, record_batch(100))}
    play.broker(fetched(2, told, version, session_id=OURS))
    play.to_client(fetched(2, told, version, session_id=THEIRS)).idle()
