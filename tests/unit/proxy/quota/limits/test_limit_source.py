from proxy.quota.kinds import load_kinds
from proxy.quota.limits.limit_source import SOURCED_KEYS, LimitSource


def test_by_default_the_configured_quotas_apply() -> None:
    source = LimitSource()
    assert not source.by_partition
    assert source.find("producer_byte_rate", "alice", "app", 0.0) is None
    assert source.take_failure() == ""


def test_the_quotas_of_sources_exist() -> None:
    assert {key.name for kind in load_kinds() for key in kind.keys if not key.for_ip} >= SOURCED_KEYS
