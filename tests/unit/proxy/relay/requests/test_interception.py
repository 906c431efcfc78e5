"""Interception: which requests are handed out, and how."""

import pytest

from proxy.quota.identity import Identity, QuotaEntity
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import new_client
from proxy.relay.inflight import InFlight
from proxy.relay.output import RelayOutput
from proxy.relay.requests.interception import Interception, covers, covers_client
from proxy.relay.service_clock import ServiceClock
from proxy.wire.api_keys import METADATA
from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Malformed
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from tests.support.messages.exchanges import opaque
from tests.support.stories.playbook import EVERYONE, START, engine

OWN = 42
REQUEST = opaque(7, OWN, 1)
MUTATIONS = {EVERYONE: {"controller_mutation_rate": 1.0}}


class Side:
    def __init__(self, quotas: dict[QuotaEntity, dict[str, float]] | None = None) -> None:
        self.traffic = Traffic()
        self.output = RelayOutput()
        quota_engine = engine(quotas or {})
        self.in_flight = InFlight(quota_engine, self.traffic, self.output)
        self.engine = quota_engine
        self.interception = Interception(self.in_flight, self.output, ServiceClock())
        self.client = new_client(Identity("u", "c", "127.0.0.1"), b"c", self.traffic, 0)

    def hand_out(self, *pieces: bytes, complete: bool = True) -> None:
        header = read_request_header(Reader([b"".join(pieces)], LENGTH_SIZE))
        frame = Frame(list(pieces), sum(map(len, pieces)), complete)
        self.interception.hand_out(frame, header, self.client, None, None)


def test_the_proxy_s_own_apis_are_covered() -> None:
    own = frozenset([OWN])
    assert [covers(engine({}), own, api_key) for api_key in (OWN, METADATA)] == [True, False]


@pytest.mark.parametrize("quotas", [{}, MUTATIONS])
def test_a_client_s_quota_covers_metadata(quotas: dict[QuotaEntity, dict[str, float]]) -> None:
    side = Side(quotas)
    assert covers_client(side.engine, METADATA, side.client, START) == bool(quotas)


@pytest.mark.parametrize("pieces", [[REQUEST], [REQUEST[:2], REQUEST[2:]], [REQUEST[:9], REQUEST[9:]]])
def test_a_request_is_handed_out_as_one_frame(pieces: list[bytes]) -> None:
    side = Side()
    side.hand_out(*pieces)
    [taken] = side.output.intercepted
    assert (taken.frame, taken.header.correlation_id) == (REQUEST[LENGTH_SIZE:], 7)
    assert (taken.exchange.local, taken.exchange.client) == (True, side.client)
    assert side.in_flight.first is taken.exchange


def test_a_request_that_is_not_whole_is_malformed() -> None:
    side = Side()
    with pytest.raises(Malformed):
        side.hand_out(REQUEST, complete=False)
    assert side.output.intercepted == []


def test_an_intercepted_request_is_forwarded_after_all() -> None:
    side = Side()
    side.hand_out(REQUEST)
    [taken] = side.output.intercepted
    side.interception.forward(taken.exchange, REQUEST, START)
    assert (side.output.to_broker, taken.exchange.local, taken.exchange.sent_at) == ([REQUEST], False, START)
