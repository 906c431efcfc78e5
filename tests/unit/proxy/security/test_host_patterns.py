"""HostPattern: which addresses an entry of upstream.hosts allows."""

import re

import pytest

from proxy.security.host_patterns import Decision, HostPattern, canonical, ip_of


def decide(pattern: str, host: str, port: int = 9092) -> Decision:
    name = canonical(host)
    return HostPattern(pattern).decide(name, ip_of(name), port)


@pytest.mark.parametrize(
    ("pattern", "host"),
    [
        ("kafka-1.internal", "kafka-1.internal"),
        ("kafka-1.internal", "Kafka-1.INTERNAL."),
        ("Kafka-*.internal.", "kafka-12.internal"),
        ("*.internal", "kafka-1.internal"),
        ("b-*.*.kafka.example", "b-1.demo.kafka.example"),
        ("*", "anything.example"),
        ("*", "127.0.0.1"),
        ("*", "名前.example"),
        ("10.0.0.0/8", "10.1.2.3"),
        ("10.1.2.3", "10.1.2.3"),
        ("10.0.0.0/8", "::ffff:10.1.2.3"),
        ("fd00::/8", "fd00::1"),
        ("fe80::/10", "fe80::1%eth0"),
        ("kafka-1:9092", "kafka-1"),
        ("10.0.0.0/8:9092", "10.1.2.3"),
        ("[fd00::/8]:9092", "fd00::1"),
        ("*:9092", "anything.example"),
    ],
)
def test_allowed(pattern: str, host: str) -> None:
    assert decide(pattern, host) is Decision.ALLOWED


@pytest.mark.parametrize(
    ("pattern", "host"),
    [
        ("kafka-1.internal", "kafka-1.internal.elsewhere.example"),
        ("kafka-1.internal", "kafka-1"),
        ("kafka-*", "kafka-1.elsewhere.example"),
        ("kafka-*.internal", "kafka-1.x.internal"),
        ("kafka.internal", "kafkaxinternal"),
        # IDNA turns these into a dot, a k and ASCII letters.
        ("kafka-*", "kafka-1。elsewhere。example"),
        ("kafka", "\u212aafka"),
        ("kafka-*", "kafka-\uff11"),
        # Resolvers take these for 127.0.0.1.
        ("*.*.*.*", "127.0.0.1"),
        ("*.*", "127.1"),
        ("kafka*.*", "kafka.0x1"),
        ("kafka-*", "kafka-" + "1" * 60),
        ("10.0.0.0/8", "11.0.0.1"),
        ("::/0", "::ffff:169.254.169.254"),
        ("kafka-1:9093", "kafka-1"),
        ("*:9093", "kafka-1"),
        ("10.0.0.0/8:9093", "10.1.2.3"),
        # Whatever it resolves to, the port is not allowed.
        ("10.0.0.0/8:9093", "kafka-1"),
    ],
)
def test_rejected(pattern: str, host: str) -> None:
    assert decide(pattern, host) is Decision.REJECTED


@pytest.mark.parametrize("host", ["kafka-1", "2130706433", "127.1", "名前.example", "10.0.0.1\0"])
def test_a_network_needs_the_addresses_of_a_name(host: str) -> None:
    assert decide("10.0.0.0/8", host) is Decision.BY_RESOLUTION


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.1/8",
        "10.0.0.0/33",
        "10.0.0",
        "*.1",
        ":9092",
        "kafka:0",
        "kafka:65536",
        "[kafka",
        "kafka..internal",
        "kafka/1",
        "名前.example",
        "a b",
    ],
)
def test_text_that_is_no_pattern(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"got {text!r}")):
        HostPattern(text)


def test_many_wildcards_take_no_time() -> None:
    """They are matched label by label, and a label has at most 63 characters."""
    pattern = ".".join(["*a*a*b"] * 20)
    assert decide(pattern, ".".join(["a" * 63] * 20)) is Decision.REJECTED
    assert decide("*a*b", "a" * 30_000) is Decision.REJECTED
