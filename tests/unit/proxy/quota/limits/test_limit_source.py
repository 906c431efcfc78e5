"""The source of limits that knows none."""

from proxy.quota.kinds import load_kinds
from proxy.quota.limits.limit_source import SOURCED_KEYS, LimitSource


def test_it_leaves_everything_to_what_is_configured():
    source = LimitSource()
    assert not source.by_partition
    assert source.find("producer_byte_rate", "alice", "app") is None


def test_it_is_asked_about_quotas_that_there_are():
    assert {key.name for kind in load_kinds() for key in kind.keys if not key.for_ip} == SOURCED_KEYS
