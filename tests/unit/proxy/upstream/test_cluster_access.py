"""ClusterAccess: what clients of the cluster get from it."""

from proxy.upstream.cluster_access import ClusterAccess


def test_aiokafka_gets_ipv6_addresses_in_brackets() -> None:
    cluster = ClusterAccess((("fd00::1", 9092), ("k", 9093)), 5.0)
    arguments = cluster.for_aiokafka()
    assert arguments["bootstrap_servers"] == ["[fd00::1]:9092", "k:9093"]
    assert arguments["security_protocol"] == "PLAINTEXT"
