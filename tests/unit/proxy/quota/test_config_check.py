"""ConfigCheck: what every kind with such a check has in common."""

import pytest

from proxy.quota.kinds import load_kinds
from proxy.quota.kinds.broker_bytes_in import ThresholdCheck
from proxy.quota.limits.resources import TOPIC, ConfigResource, Resources

CHECKS = [kind.check for kind in load_kinds() if kind.check is not None]
RESOURCES = Resources(
    {"t": {"bytes.in.per.sec.threshold": "5"}}, {"1": {"total.bytes.in.per.sec.threshold": "9"}}
)


@pytest.mark.parametrize("kind", CHECKS)
def test_a_change_that_is_undone_leaves_no_conflict(kind: type[ThresholdCheck]) -> None:
    check = kind(RESOURCES)
    assert check.conflict() == ""
    check.change(ConfigResource(TOPIC, "t"), {"bytes.in.per.sec.threshold": "10"})
    assert check.conflict()
    check.undo()
    assert check.conflict() == ""
