"""What client libraries are known to do, by the names that they give themselves in ApiVersions (KIP-511)."""

from typing import Final

_RETRY_THROTTLING_SINCE: Final = {"apache-kafka-java": (2, 7), "kafka-python": (3, 0)}
"""By library, the first version whose producer retries THROTTLING_QUOTA_EXCEEDED (KIP-599). librdkafka and
aiokafka do not retry it, and Java before 2.7 does not know it.
"""


def retries_throttling(client_software: str) -> bool:
    """Whether this library's producer is known to send a batch again that was rejected with
    THROTTLING_QUOTA_EXCEEDED. `client_software`: its name and version, such as `apache-kafka-java 4.3.1`.
    """
    name, _, version = client_software.partition(" ")
    since = _RETRY_THROTTLING_SINCE.get(name)
    if since is None:
        return False
    major, _, rest = version.partition(".")
    minor = rest.partition(".")[0]
    if not (version.isascii() and major.isdecimal() and minor.isdecimal() and len(version) < 100):
        return False
    return (int(major), int(minor)) >= since
