"""FreeSessions: which requests are forwarded as they are, and for how long."""

from typing import Self

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.quota.limits.limits import Limits
from proxy.relay.budgets.id_budget import IdBudget
from proxy.relay.fetch.free_sessions import MAX_SESSIONS, FreeSession, FreeSessions
from proxy.relay.fetch.omittable import OmittablePartitions
from proxy.wire.api_keys import FETCH
from proxy.wire.errors import Malformed
from proxy.wire.fetch.request import NO_SESSION
from proxy.wire.views import RequestView
from tests.support.messages.reading import read_fetch
from tests.support.stories.fetching import COLD, HOT, Names, Omitting, fetch

VERSION = 12
AT_MOST = 3
SESSION = 7
WHO = Identity("u", "c", "127.0.0.1")
VIEW = RequestView(FETCH, VERSION, 1, "c", 100, flexible=True)


class Side:
    def __init__(self) -> None:
        self.quota = Omitting()
        self.engine = QuotaEngine([self.quota])
        self.engine.configure(Limits({}), 0.0)
        self.sessions = FreeSessions(self.engine, OmittablePartitions(self.engine, IdBudget(Names())))

    def open(self, *partitions: tuple[str, int], session_id: int = SESSION, error_code: int = 0) -> Self:
        """The broker has responded to the request that opens a session."""
        rewrite = FreeSession(self.sessions, read_fetch(request(*partitions, session=(0, 0))))
        rewrite.session_id = session_id
        rewrite.error_code = error_code
        rewrite.opened()
        return self

    def covers(self, *partitions: tuple[str, int], session_id: int = SESSION) -> bool:
        incremental = read_fetch(request(*partitions, session=(session_id, 1)))
        return self.sessions.covers(incremental, VIEW, WHO, AT_MOST)


def request(*partitions: tuple[str, int], session: tuple[int, int]) -> bytes:
    return fetch(1, dict.fromkeys(partitions, 10), VERSION, session=session)


def test_a_request_that_names_nothing_or_what_no_quota_omits_is_forwarded() -> None:
    side = Side().open((COLD, 0))
    assert side.covers()
    assert side.covers((COLD, 1))


def test_a_request_that_names_a_partition_that_a_quota_may_omit_is_not() -> None:
    side = Side().open((COLD, 0))
    assert not side.covers((COLD, 0), (HOT, 0))


@pytest.mark.parametrize("how", [{"error_code": 71}, {"session_id": NO_SESSION}])
def test_a_response_that_opens_no_session(how: dict[str, int]) -> None:
    assert not Side().open((COLD, 0), **how).covers()


def test_a_session_that_is_closed_or_unknown() -> None:
    side = Side().open((COLD, 0))
    assert not side.covers(session_id=8)
    side.sessions.close(8)
    assert side.covers()
    side.sessions.close(SESSION)
    assert not side.covers()


def test_a_session_with_a_partition_that_new_limits_may_omit_is_dropped() -> None:
    side = Side().open((COLD, 0)).open(("other", 0), session_id=8)
    side.quota.topics.add(COLD)
    assert side.covers(), "the limits are still the same"
    side.engine.configure(Limits({}), 0.0)
    assert not side.covers()
    assert side.covers(session_id=8)


def test_the_oldest_of_too_many_sessions_is_dropped() -> None:
    side = Side()
    for number in range(MAX_SESSIONS + 1):
        side.open((COLD, 0), session_id=number + 1)
    assert [side.covers(session_id=number + 1) for number in range(3)] == [False, True, True]


def test_a_session_that_grows_too_large_is_malformed() -> None:
    side = Side().open((COLD, 0), (COLD, 1))
    assert side.covers((COLD, 2))
    with pytest.raises(Malformed):
        side.covers((COLD, 3))
