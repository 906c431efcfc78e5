"""Which libraries are known to retry THROTTLING_QUOTA_EXCEEDED."""

import pytest

from proxy.wire.client_software import retries_throttling


@pytest.mark.parametrize(
    ("software", "retries"),
    [
        ("apache-kafka-java 4.3.1", True),
        ("apache-kafka-java 2.7.0", True),
        ("apache-kafka-java 2.6.3", False),
        ("apache-kafka-java unknown", False),
        ("apache-kafka-java 4", False),
        ("kafka-python 3.0.12", True),
        ("kafka-python 2.0.2", False),
        ("librdkafka 2.16.0", False),
        ("aiokafka 0.14.0", False),
        ("", False),
        ("apache-kafka-java " + "9" * 5000 + ".1", False),
        ("apache-kafka-java \u0664.3", False),
    ],
)
def test_who_retries(software: str, retries: bool) -> None:
    assert retries_throttling(software) is retries
