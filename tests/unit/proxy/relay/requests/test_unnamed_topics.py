"""UnnamedTopics: which ids a request waits for, when it looks for their names, and when it gives up.

tests/relay/produce/test_unnamed_topics.py has the stories of a whole connection.
"""

import pytest

from proxy.quota.identity import Identity
from proxy.quota.limits.resources import NO_RESOURCES, Resources
from proxy.relay.budgets.id_budget import IdBudget
from proxy.relay.close_reasons import UNKNOWN_TOPIC, RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.requests.unnamed_topics import (
    FIRST_LOOK_SECONDS,
    NAMES_SECONDS,
    NO_TOPICS,
    SECONDS_PER_ID,
    UnnamedTopics,
    reject_part,
    unnamed_topics,
)
from proxy.relay.requests.waiting_produce import WaitingProduce
from proxy.wire.api_keys import PRODUCE
from proxy.wire.cursor import NO_ID
from proxy.wire.frames import Frame
from proxy.wire.reader import NOTHING, Reader
from proxy.wire.views import Item, RequestView
from tests.support.stories.playbook import START, engine
from tests.support.stories.unnamed_topics import COLD, HOT, IDS, LIMITED, Names

WHO = Identity("u", "c", "127.0.0.1")


class Side:
    def __init__(self, names: Names, resources: Resources = LIMITED) -> None:
        self.engine = engine({}, resources=resources)
        self.names = names
        self.view = RequestView(PRODUCE, 13, 1, "c", 100, flexible=True, want_items=True)

    def find(self, *items: Item) -> frozenset[bytes]:
        self.view.items = list(items)
        return unnamed_topics(self.engine, self.names, self.view, WHO)

    def wait(self, topic_ids: frozenset[bytes]) -> UnnamedTopics:
        client = new_client(WHO, b"c", Traffic(), 0)
        exchange = Exchange(1, client, api_key=PRODUCE)
        produce = WaitingProduce(Frame([b""], 0, True), exchange, Reader(NOTHING), self.view)
        return UnnamedTopics(self.names, IdBudget(self.names), produce, topic_ids, START)


def item(name: str, size: int = 10) -> Item:
    return Item("", IDS[name].bytes, 0, size)


def test_known_names_are_set_and_unknown_ids_are_found() -> None:
    side = Side(Names(COLD))
    assert side.find(item(COLD), item(HOT), item(HOT)) == {IDS[HOT].bytes}
    assert [each.topic for each in side.view.items] == [COLD, "", ""]


@pytest.mark.parametrize(
    "items",
    [[], [item(HOT, 0)], [Item("", NO_ID, 0, 10)], [Item(HOT, NO_ID, 0, 10)], [item("secret")]],
    ids=["none", "empty", "without an id", "by name", "hidden"],
)
def test_what_needs_no_name(items: list[Item]) -> None:
    assert Side(Names()).find(*items) == NO_TOPICS


def test_without_a_limit_by_topic_or_the_right_to_ask_no_name_is_needed() -> None:
    silent = Names()
    silent.may_ask = False
    assert Side(silent).find(item(HOT)) == NO_TOPICS
    assert Side(Names(), NO_RESOURCES).find(item(HOT)) == NO_TOPICS


def test_the_pauses_between_looks_grow_until_the_names_are_known() -> None:
    names = Names()
    side = Side(names)
    wait = side.wait(side.find(item(HOT)))
    looks = [wait.wake_at]
    for _ in range(3):
        assert not wait.look(looks[-1])
        looks.append(wait.wake_at)
    pauses = [later - earlier for earlier, later in zip([START, *looks], looks, strict=False)]
    assert pauses == pytest.approx([FIRST_LOOK_SECONDS * factor for factor in (1, 2, 4, 8)])
    names.learn(HOT)
    assert wait.look(looks[-1])
    assert wait.topic_ids == NO_TOPICS


def test_many_ids_are_looked_for_less_often() -> None:
    side = Side(Names())
    wait = side.wait(frozenset([number.to_bytes(16, "big") for number in range(10, 1010)]))
    assert wait.wake_at == pytest.approx(START + 1000 * SECONDS_PER_ID)


def test_it_gives_up_after_its_time() -> None:
    side = Side(Names())
    wait = side.wait(side.find(item(HOT)))
    assert not wait.look(START + NAMES_SECONDS - 0.001)
    assert wait.look(START + NAMES_SECONDS)
    assert wait.topic_ids == {IDS[HOT].bytes}


def test_a_part_of_a_request_with_an_unknown_topic_ends_the_connection() -> None:
    reject_part(5_000_000, NO_TOPICS)
    with pytest.raises(RelayError) as ended:
        reject_part(5_000_000, frozenset([IDS[HOT].bytes]))
    assert ended.value.reason == UNKNOWN_TOPIC
