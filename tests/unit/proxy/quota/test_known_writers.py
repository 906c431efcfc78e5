"""KnownWriters: whom it remembers, and for how long."""

from proxy.quota.identity import ANONYMOUS, Identity
from proxy.quota.known_writers import PAIRS_AT_MOST, REMEMBERED_SECONDS, KnownWriters
from proxy.wire.api_keys import PRODUCE
from proxy.wire.cursor import NO_ID
from proxy.wire.error_codes import TOPIC_AUTHORIZATION_FAILED
from proxy.wire.views import UNCHARGED, Item, RequestView, ResponseView

ALICE = Identity("alice", "c", "127.0.0.1")
MALLORY = Identity("mallory", "c", "127.0.0.1")


def request(*topics: str) -> RequestView:
    view = RequestView(PRODUCE, 9, 1, "c", 100, flexible=True, want_items=True)
    view.items = [Item(topic, NO_ID, 0, 10) for topic in topics]
    return view


def response(*failed: str) -> ResponseView:
    view = ResponseView(9, True, 50, True)
    view.items = [Item(topic, NO_ID, 0, 0, b"", TOPIC_AUTHORIZATION_FAILED) for topic in failed]
    return view


def marked(writers: KnownWriters, who: Identity, *topics: str) -> list[str]:
    view = request(*topics)
    writers.mark(view, who)
    found = [item.topic for item in view.items if item.error_code == UNCHARGED]
    assert view.uncharged == bool(found)
    return found


def write(writers: KnownWriters, who: Identity, *topics: str, failed: tuple[str, ...] = ()) -> None:
    view = request(*topics)
    writers.mark(view, who)
    writers.learn(view, response(*failed), who, 10.0)


def test_a_user_is_known_by_topic_from_its_first_records_on() -> None:
    writers = KnownWriters()
    assert marked(writers, ALICE, "a", "a", "b") == ["a", "a", "b"]
    write(writers, ALICE, "a", "b", failed=("b",))
    another = Identity("alice", "another", "127.0.0.2")
    assert marked(writers, another, "a", "a", "b", "a") == ["b"]
    assert marked(writers, MALLORY, "a") == ["a"]


def test_a_failure_makes_it_unknown() -> None:
    writers = KnownWriters()
    for failed in ((), ("a",), ()):
        write(writers, ALICE, "a", "b", failed=failed)
        assert marked(writers, ALICE, "a", "b") == list(failed)


def test_all_clients_without_a_principal_have_the_same_rights() -> None:
    writers = KnownWriters()
    nobody = Identity(ANONYMOUS, "c", "127.0.0.1")
    assert marked(writers, nobody, "a") == []
    write(writers, nobody, "a", failed=("a",))
    assert marked(writers, nobody, "a") == []


def test_a_topic_whose_name_is_not_known_has_no_writers() -> None:
    writers = KnownWriters()
    assert marked(writers, ALICE, "", "a", "") == ["a"]
    write(writers, ALICE, "", failed=("",))


def test_users_are_forgotten() -> None:
    writers = KnownWriters()
    write(writers, ALICE, "a")
    writers.forget(9.0 + REMEMBERED_SECONDS)
    assert marked(writers, ALICE, "a") == []
    writers.forget(10.0 + REMEMBERED_SECONDS)
    assert marked(writers, ALICE, "a") == ["a"]
    assert not writers._topics_of


def test_they_are_bounded() -> None:
    writers = KnownWriters()
    topics = [f"topic-{number}" for number in range(PAIRS_AT_MOST)]
    write(writers, MALLORY, *topics)
    write(writers, ALICE, "a")
    assert marked(writers, ALICE, "a") == ["a"]
    write(writers, MALLORY, topics[0], failed=(topics[0],))
    write(writers, ALICE, "a", "b")
    assert marked(writers, ALICE, "a", "b") == ["b"]
