"""The console's requests: what they reply, and which status."""

import json
from typing import Any

import pytest

from proxy.quota.identity import ANONYMOUS
from proxy.store.quota_store import StoreUnavailable
from proxy.telemetry.console import CHANGE, CONFIGURED, EXPLAIN, OVERVIEW, SHARES, ConsoleRequest
from tests.support.server.consoles import ALICE, PRODUCER, ConsoleKit


async def ask(kit: ConsoleKit, what: str, body: object = None, **query: str) -> tuple[int, Any]:
    raw = json.dumps(body).encode()
    request = ConsoleRequest(what, query, raw, "admin-port", "10.0.0.7")
    reply = await kit.console.reply(request)
    return reply.status, json.loads(reply.body)


async def test_overview_has_the_quotas_that_can_be_set() -> None:
    status, found = await ask(ConsoleKit(), OVERVIEW)
    assert status == 200
    assert PRODUCER in found["keys"]["client"]
    assert found["keys"]["ip"] == ["connection_creation_rate"]
    assert found["max_connections"] == 5


async def test_shares() -> None:
    status, found = await ask(ConsoleKit(), SHARES, q="alice")
    assert (status, found["total"], len(found["instances"]), found["degraded"]) == (200, 1, 2, True)


async def test_configured_and_explain() -> None:
    kit = ConsoleKit()
    assert (await ask(kit, CONFIGURED, q="alice"))[1]["total"] == 1
    status, found = await ask(kit, EXPLAIN, user="alice")
    assert status == 200
    assert found["quotas"][0]["quota"] == PRODUCER
    status, found = await ask(kit, EXPLAIN, ip="10.1.2.3")
    assert found["quotas"][0]["limit"] == 20.0
    assert (await ask(kit, EXPLAIN, topic="orders"))[1]["note"] == ""
    assert (await ask(kit, EXPLAIN, broker="1"))[1]["note"] == ""
    assert "topic order " in (await ask(kit, EXPLAIN, topic="order"))[1]["note"]
    assert (await ask(kit, EXPLAIN, user="alice"))[1]["note"] == ""
    unidentified = ConsoleKit(identifies_users=False)
    assert "ANONYMOUS" in (await ask(unidentified, EXPLAIN, user="alice"))[1]["note"]
    assert (await ask(unidentified, EXPLAIN, **{"client-id": "app"}))[1]["note"] == ""


async def test_explain_says_which_lists_of_a_client_wait() -> None:
    kit = ConsoleKit()
    turns = [kit.list_turns.join((node_id, ("alice", "")), 60_000, 0.0) for node_id in (1, 1, 2)]
    assert [turn.ask(1.0, 0.0) > 0.0 for turn in turns] == [False, True, False]
    kit.list_turns.join((1, (ANONYMOUS, "10.1.2.3")), 60_000, 0.0)
    found = (await ask(kit, EXPLAIN, user="alice"))[1]["lists"]
    assert found == {"from_bytes": 4096, "max_bytes": 65536, "in_flight": 2, "waiting": 1}
    for query in ({"user": ANONYMOUS}, {"ip": "10.1.2.3"}, {"ip": "::ffff:10.1.2.3"}):
        assert (await ask(kit, EXPLAIN, **query))[1]["lists"]["waiting"] == 1, query
    for query in ({"user": "bob"}, {"ip": "10.1.2.4"}):
        assert (await ask(kit, EXPLAIN, **query))[1]["lists"]["waiting"] == 0, query
    assert "waiting" not in (await ask(kit, EXPLAIN, **{"client-id": "app"}))[1]["lists"]
    assert (await ask(kit, EXPLAIN, topic="orders"))[1]["lists"] is None


@pytest.mark.parametrize("query", [{}, {"ip": "no address"}, {"address": "10.0.0.1"}, {"broker": "x"}])
async def test_what_cannot_be_explained(query: dict[str, str]) -> None:
    status, found = await ask(ConsoleKit(), EXPLAIN, **query)
    assert (status, list(found)) == (400, ["error"])


async def test_change_has_its_author_in_the_log() -> None:
    kit = ConsoleKit()
    change = {"entity": {"user": "alice"}, "values": {PRODUCER: 7}}
    assert await ask(kit, CHANGE, change) == (200, {"changed": True})
    assert kit.store.effective[ALICE] == {PRODUCER: 7.0}
    [(_, setting)] = kit.log.records
    assert (setting.by, setting.client_id, setting.origin) == ("admin-port", "console", "10.0.0.7")


async def test_status_of_what_fails() -> None:
    kit = ConsoleKit()
    change = {"entity": {"user": "alice"}, "values": {PRODUCER: 7}}
    kit.log.failure = StoreUnavailable("the topic is away")
    assert await ask(kit, CHANGE, change) == (503, {"error": "the topic is away"})
    kit.without_store()
    assert (await ask(kit, CHANGE, change))[0] == 409
    assert (await ask(kit, CHANGE, {"entity": {}}))[0] == 400
