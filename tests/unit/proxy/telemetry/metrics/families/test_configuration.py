"""The metrics of the configuration file, and of the quota topic."""

import pytest

from proxy.store.skipped_records import SkippedRecords
from proxy.telemetry.metrics.families.configuration import StoreState, configuration_families


class Store:
    def __init__(self, problem: str, lag: int) -> None:
        self.problem = problem
        self.lag = lag
        self.skipped = SkippedRecords("quotas")


def values(store: StoreState | None = None, *, rejected: bool = False) -> dict[str, float]:
    """The values without the prefix of their names."""
    return {
        family.name.removeprefix("quota_proxy_"): family.samples[0].value
        for family in configuration_families(rejected, store)
    }


def test_the_topic_that_keeps_quotas() -> None:
    found = values(Store("", 0))
    assert (found["quota_store_reachable"], found["quota_store_lag"]) == (1, 0)
    found = values(Store("away", 7))
    assert (found["quota_store_reachable"], found["quota_store_lag"]) == (0, 7)
    assert "quota_store_reachable" not in values()


def test_records_that_are_skipped() -> None:
    store = Store("", 0)
    for key in (b"a", b"b", b"b"):
        store.skipped.skip(key, 0, "unknown")
    store.skipped.supersede(b"a")
    found = values(store)
    assert found["quota_store_skipped_records"] == 3
    assert found["quota_store_broken_records"] == 1


@pytest.mark.parametrize("rejected", [True, False])
def test_the_configuration_file(rejected: bool) -> None:
    assert values(rejected=rejected)["config_last_reload_successful"] == (0 if rejected else 1)
