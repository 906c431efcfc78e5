"""ConfigConflicts: changes that are made and undone one by one, with the values that they lead to."""

from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.store.quota_store import ConfigChange
from tests.support.quotas.config_rules import too_much
from tests.support.quotas.memory_store import memory_store

PART, TOTAL = "bytes.in.per.sec.threshold", "total.bytes.in.per.sec.threshold"
T, U = (ConfigResource(TOPIC, name) for name in ("t", "u"))
CONFIGS = {ConfigResource(BROKER, DEFAULT_RESOURCE): {TOTAL: "10"}, T: {PART: "8"}}


def test_changes_are_made_and_undone() -> None:
    store, _ = memory_store({}, configs=CONFIGS)
    conflicts = store.conflicts()
    conflicts.change([ConfigChange(U, {PART: "1"}), ConfigChange(U, {PART: "3"})])
    assert (conflicts.made, conflicts.conflict()) == (2, too_much("t (8), u (3)", 11, 10))
    conflicts.undo(1)
    assert (conflicts.made, conflicts.conflict()) == (1, "")
    assert store.conflicts().made == 0


def test_the_configs_that_a_new_topic_does_not_keep_are_not_checked() -> None:
    store, _ = memory_store({}, configs=CONFIGS)
    conflicts = store.conflicts()
    conflicts.change([ConfigChange(U, {PART: "9"}), ConfigChange(T, {}, back_to_file=True)])
    assert conflicts.conflict()
