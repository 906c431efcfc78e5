"""FailedWriters: whom it remembers, and for how long."""

from proxy.quota.failed_writers import REMEMBERED_SECONDS, USERS_AT_MOST, FailedWriters
from proxy.quota.identity import Identity
from proxy.wire.api_keys import PRODUCE
from proxy.wire.cursor import NO_ID
from proxy.wire.error_codes import TOPIC_AUTHORIZATION_FAILED
from proxy.wire.views import UNCHARGED, Item, RequestView, ResponseView

MALLORY = Identity("mallory", "c", "127.0.0.1")
ALICE = Identity("alice", "c", "127.0.0.1")


def request(*topics: str) -> RequestView:
    view = RequestView(PRODUCE, 9, 1, "c", 100, flexible=True, want_items=True)
    view.items = [Item(topic, NO_ID, 0, 10) for topic in topics]
    return view


def response(*failed: str) -> ResponseView:
    view = ResponseView(9, True, 50, True)
    view.items = [Item(topic, NO_ID, 0, 0, b"", TOPIC_AUTHORIZATION_FAILED) for topic in failed]
    return view


def marked(writers: FailedWriters, who: Identity, *topics: str, now: float = 10.0) -> list[str]:
    view = request(*topics)
    writers.mark(view, who, now)
    found = [item.topic for item in view.items if item.error_code == UNCHARGED]
    assert view.uncharged == bool(found)
    return found


def test_a_user_is_remembered_by_topic_until_it_writes() -> None:
    writers = FailedWriters()
    assert not writers.any
    writers.learn(request("a", "b"), response("a"), MALLORY, 10.0)
    assert writers.any
    another = Identity("mallory", "another", "127.0.0.2")
    assert marked(writers, another, "a", "b") == ["a"]
    assert marked(writers, ALICE, "a", "b") == []
    written = request("a")
    writers.mark(written, another, 10.0)
    writers.learn(written, response(), another, 10.0)
    assert not writers.any


def test_users_are_forgotten() -> None:
    writers = FailedWriters()
    writers.learn(request("a"), response("a"), MALLORY, 10.0)
    assert marked(writers, MALLORY, "a", now=10.0 + REMEMBERED_SECONDS) == []
    writers.forget(9.0 + REMEMBERED_SECONDS)
    assert writers.any
    writers.forget(10.0 + REMEMBERED_SECONDS)
    assert not writers.any


def test_they_are_bounded() -> None:
    writers = FailedWriters()
    for number in range(USERS_AT_MOST + 100):
        topic = f"made-up-{number}"
        writers.learn(request(topic), response(topic), MALLORY, 10.0)
    assert len(writers._until) == USERS_AT_MOST
