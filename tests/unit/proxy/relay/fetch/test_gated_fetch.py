"""GatedFetch: until when it waits."""

import pytest

from proxy.quota.identity import Identity
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.fetch.gated_fetch import NAMES_SECONDS, GatedFetch
from proxy.wire.api_keys import FETCH
from proxy.wire.fetch.request import FetchRequest
from proxy.wire.views import RequestView

NOW = 10.0


@pytest.mark.parametrize(("max_wait_ms", "answer_at"), [(500, 10.5), (0, NOW), (-1, NOW)])
def test_until_when_it_waits(max_wait_ms: int, answer_at: float) -> None:
    view = RequestView(FETCH, 12, 1, "c", 100)
    view.max_wait_ms = max_wait_ms
    client = new_client(Identity("alice", "c", "10.0.0.1"), b"c", Traffic(), 1)
    fetch = GatedFetch(Exchange(1, client), view, FetchRequest(12), NOW)
    assert (fetch.answer_at, fetch.names_by) == (answer_at, NOW + NAMES_SECONDS)
    assert fetch.session is None
