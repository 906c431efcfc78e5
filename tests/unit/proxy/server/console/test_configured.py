"""The list of configured quotas: search, order and bound."""

from proxy.quota.identity import QuotaEntity
from proxy.server.console.configured import MOST, configured
from tests.support.quotas.memory_store import memory_store
from tests.support.server.consoles import PRODUCER, RATE, ConsoleKit


async def test_search_in_names_and_quotas() -> None:
    store = ConsoleKit().store
    assert (await configured(store, ""))["total"] == 5
    found = await configured(store, "ORDERS byte.rate")
    assert found == {
        "total": 1,
        "entities": [{"entity": {"topic": "orders"}, "quotas": {RATE: [{"from": "file", "value": "100"}]}}],
    }
    assert (await configured(store, "nobody"))["total"] == 0


async def test_bounded_and_in_order() -> None:
    store, _ = memory_store({QuotaEntity(f"user-{n:04}", None): {PRODUCER: 1.0} for n in range(MOST + 5)})
    found = await configured(store, "")
    assert (found["total"], len(found["entities"])) == (MOST + 5, MOST)
    assert found["entities"][0]["entity"] == {"user": "user-0000"}
