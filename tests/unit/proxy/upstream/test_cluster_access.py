"""ClusterAccess: what clients of the cluster get from it."""

from proxy.upstream.cluster_access import ClusterAccess


def test_aiokafka_gets_ipv6_addresses_in_brackets() -> None:
    cluster = ClusterAccess((("fd00::1", 9092), ("k", 9093)), 5.0)
    arguments = cluster.for_aiokafka()
    assert arguments["bootstrap_servers"] == ["[fd00::1]:9092", "k:9093"]
    assert arguments["security_protocol"] == "PLAINTEXT"


def test_brokers_of_the_metadata_come_before_those_of_the_settings() -> None:
    now = [("k", 9094)]
    cluster = ClusterAccess((("k", 9092), ("k", 9093)), 5.0, known=lambda: now)
    assert cluster.addresses == [("k", 9094), ("k", 9092), ("k", 9093)]
    now += [("k", 9093), ("", 9095), ("a]b", 9096)]
    servers = cluster.for_aiokafka()["bootstrap_servers"]
    assert servers == ["k:9094", "k:9093", "k:9092"], "each once, and none that cannot be one"
