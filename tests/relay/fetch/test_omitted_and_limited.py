"""One quota limits the bytes of a consumer, and another omits partitions of its fetches."""

import math
from typing import Any

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.kinds import client_bytes
from proxy.quota.limits.limits import Limits
from proxy.relay.counters.traffic import Traffic
from tests.support.messages.exchanges import record_batch
from tests.support.messages.kio_messages import Ports, read_frame, request_type
from tests.support.quotas.enforcement import enforcement
from tests.support.stories.fetching import COLD, HOT, OURS, THEIRS, Omitting, fetch, fetched
from tests.support.stories.playbook import EVERYONE, START, Playbook, drive

FETCH, VERSION = 1, 12


class Both:
    """A client whose quota has 1000 bytes per second, and its connections."""

    def __init__(self) -> None:
        self.omitting = Omitting()
        self.engine = QuotaEngine([client_bytes.KIND.build(), self.omitting])
        self.engine.configure(
            Limits({EVERYONE: {"consumer_byte_rate": 1000.0}}, settings=enforcement()), START
        )

    def connect(self) -> Playbook:
        return Playbook(drive(self.engine, Ports(), Traffic()))


def sent(play: Playbook) -> Any:
    """The fetch that has gone to the broker."""
    return read_frame(request_type(FETCH, VERSION), b"".join(play.relay.take_to_broker()))


def opened(both: Both, size: int = 3000) -> Playbook:
    """A session whose first response has put the quota into debt."""
    play = both.connect().client(fetch(1, {(HOT, 0): 10}, session=(0, 0)))
    sent(play)
    records = {(HOT, 0): (70, record_batch(size))}
    play.broker(fetched(1, records, session_id=OURS)).relay.take_to_client()
    return play


def test_a_fetch_of_a_session_that_waits_for_bytes_is_answered_and_the_broker_misses_no_epoch() -> None:
    both = Both()
    play = opened(both)
    # The client comes later than it was told to, and another connection is served before it.
    began = play.relay.next_timer - START + 0.5
    play.at(began).unmuted()
    other = both.connect().at(began).client(fetch(5, {(COLD, 0): 1}))
    other.broker(fetched(5, {(COLD, 0): (70, record_batch(4000))}))
    play.client(fetch(2, {}, session=(THEIRS, 1))).to_broker().at(began + 0.499).to_client()
    play.at(began + 0.5).to_broker()
    response = b"".join(play.relay.take_to_client())
    wait = play.relay.next_timer - (START + began + 0.5)
    assert wait > 2.0
    assert response == fetched(2, {}, session_id=THEIRS, throttle_ms=math.ceil(wait * 1000 - 1e-6))
    play.at(began + 0.5 + wait).client(fetch(3, {}, session=(THEIRS, 2)))
    request = sent(play)
    assert (request.session_id, request.session_epoch) == (OURS, 1)


@pytest.mark.parametrize("max_wait_ms", [0, 500])
def test_a_fetch_that_is_granted_bytes_and_not_forwarded_reserves_none(max_wait_ms: int) -> None:
    alone = Both().connect().client(fetch(1, {(COLD, 0): 1}))
    free = sent(alone).max_bytes
    both = Both()
    both.omitting.omit(60.0, 0)
    play = both.connect().client(fetch(1, {(HOT, 0): 10}, session=(0, 0), max_wait_ms=max_wait_ms))
    play.drain().to_broker()
    assert len(play.relay.take_to_client()) == 1
    other = both.connect().client(fetch(1, {(COLD, 0): 1}))
    assert sent(other).max_bytes == free
