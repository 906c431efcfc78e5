"""RequestParser: what is read of a request, and what the quotas see of one that is not read."""

import pytest

from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE, PRODUCER_BYTE_RATE_ACTION, REJECT
from proxy.quota.limits.resources import NO_RESOURCES, Resources
from proxy.relay.close_reasons import RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.relay.cut_through import CutThrough
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.requests.parser import RequestParser, unread_body
from proxy.relay.settings import RelaySettings
from proxy.wire.api_keys import FETCH, METADATA, PRODUCE
from proxy.wire.apis.api import Api, RequestHeader, read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Short
from proxy.wire.frames import Frame, start_reading
from proxy.wire.protected_topics import ProtectedTopics
from proxy.wire.reader import Reader
from proxy.wire.spare_items import SpareItems
from proxy.wire.views import RequestView
from tests.support.messages.exchanges import TOPIC, fetch, opaque, produce
from tests.support.stories.playbook import EVERYONE, engine

REJECTING = Resources({TOPIC: {PRODUCER_BYTE_RATE.name: "1000", PRODUCER_BYTE_RATE_ACTION.name: REJECT}})
PROTECTED = ProtectedTopics(frozenset([TOPIC]))
REQUESTS = {EVERYONE: {"request_percentage": 10.0}}
OPAQUE = 42


class Side:
    def __init__(
        self,
        quotas: dict[QuotaEntity, dict[str, float]] | None = None,
        resources: Resources = NO_RESOURCES,
        protected: ProtectedTopics | None = None,
        between_brokers: bool = False,
    ) -> None:
        self.traffic = Traffic()
        self.settings = RelaySettings(
            max_frame_bytes=1 << 20, protected=protected, between_brokers=between_brokers
        )
        self.parser = RequestParser(
            engine(quotas or {}, resources=resources),
            self.traffic,
            self.settings,
            SpareItems(self.settings.spare_items),
        )
        self.client = new_client(Identity("u", "client", "127.0.0.1"), b"client", self.traffic, 0)

    def start(self, *pieces: bytes, size: int = 0) -> tuple[Frame, Reader, RequestHeader]:
        """A frame, a reader behind its header's client id, and the header."""
        there = sum(map(len, pieces))
        frame = Frame(list(pieces), size or there, size in (0, there))
        reader = start_reading(frame, self.settings.reader)
        return frame, reader, read_request_header(reader)

    def api(self, header: RequestHeader) -> Api:
        api = self.parser.api(header)
        assert api is not None
        return api

    def read(self, *pieces: bytes, size: int = 0) -> RequestView:
        frame, reader, header = self.start(*pieces, size=size)
        return self.parser.read(frame, reader, header, self.client, self.api(header))


def test_items_are_read_if_a_quota_wants_them() -> None:
    [item] = Side(resources=REJECTING).read(produce(1, size=300)).items
    assert (item.topic, item.partition) == (TOPIC, 0)
    assert Side().read(produce(1, size=300)).items == []


def test_the_body_of_a_produce_request_begins_behind_its_header() -> None:
    side = Side()
    view = side.read(produce(1, version=9))
    assert (view.api_key, view.correlation_id, view.client_id, view.acks) == (PRODUCE, 1, "client", 1)
    assert side.parser.body_at == LENGTH_SIZE + 8 + 2 + len("client") + 1


@pytest.mark.parametrize(("resources", "heads"), [(NO_RESOURCES, False), (REJECTING, True)])
def test_the_heads_of_batches_are_read_if_a_quota_may_reject(resources: Resources, heads: bool) -> None:
    assert Side(resources=resources).read(produce(1)).rejectable == heads


def test_a_request_to_a_protected_topic_is_read_again_with_its_items() -> None:
    view = Side(protected=PROTECTED).read(produce(1))
    assert view.names_protected
    assert [item.topic for item in view.items] == [TOPIC]


def test_a_part_of_a_request_to_a_protected_topic_cannot_be_answered() -> None:
    request = produce(1, size=5000)
    with pytest.raises(RelayError):
        Side(protected=PROTECTED).read(request[:2000], size=len(request))


def test_a_request_is_read_on_where_its_first_part_ends() -> None:
    side = Side(resources=REJECTING)
    request = produce(1, size=5000)
    frame, reader, header = side.start(request[:2000], size=len(request))
    api = side.api(header)
    view = side.parser.read(frame, reader, header, side.client, api)
    assert view.partial
    assert not view.cursor.done
    cut = CutThrough(frame, Exchange(1, side.client, api=api, request=view), reader, view)
    for end, done in ((4000, False), (len(request), True)):
        cut.feed([request[end - 2000 : end] if not done else request[4000:]])
        side.parser.read_on(cut, api, view, done)
        assert view.cursor.done == done


def test_a_message_that_is_longer_than_its_frame() -> None:
    request = produce(1, size=300)
    with pytest.raises(Short):
        Side(resources=REJECTING).read(request[:-10])


@pytest.mark.parametrize(("quotas", "seen"), [({}, False), (REQUESTS, True)])
def test_the_quotas_see_the_header_of_a_request_that_is_not_read(
    quotas: dict[QuotaEntity, dict[str, float]], seen: bool
) -> None:
    side = Side(quotas)
    frame, _, header = side.start(opaque(7, OPAQUE, 3))
    assert side.parser.api(header) is None
    view = side.parser.unread(frame, header, side.client)
    assert (view is not None) == seen
    if view is not None:
        assert (view.api_key, view.api_version, view.size) == (OPAQUE, 3, frame.size - LENGTH_SIZE)


def test_between_brokers_an_unknown_version_is_forwarded_unread_and_counted() -> None:
    side = Side(between_brokers=True)
    _, _, known = side.start(fetch(1))
    _, _, unknown = side.start(opaque(1, FETCH, 99))
    assert side.parser.api(known) is not None
    assert side.parser.api(unknown) is None
    assert side.traffic.unread_fetches == 1


def test_the_view_of_a_request_whose_header_alone_is_read() -> None:
    side = Side()
    frame, _, header = side.start(opaque(7, METADATA, 9))
    view = unread_body(frame, header, side.client, side.api(header))
    assert (view.api_key, view.flexible, view.items, view.correlation_id) == (METADATA, True, [], 7)
