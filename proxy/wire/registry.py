"""The APIs that the proxy knows, by key."""

from typing import Final

from proxy.wire.api_00_produce import Produce
from proxy.wire.api_01_fetch import Fetch
from proxy.wire.api_03_metadata import Metadata
from proxy.wire.api_10_find_coordinator import FindCoordinator
from proxy.wire.api_18_api_versions import ApiVersions
from proxy.wire.api_60_describe_cluster import DescribeCluster
from proxy.wire.api_78_share_fetch import ShareFetch
from proxy.wire.api_79_share_acknowledge import ShareAcknowledge
from proxy.wire.api_keys import END, FETCH, PRODUCE
from proxy.wire.apis import Api
from proxy.wire.intercepted import ANSWERED
from proxy.wire.sasl_apis import SASL_AUTHENTICATE, SASL_HANDSHAKE

KNOWN: Final[list[Api | None]] = [None] * END
"""Those that it reads or answers; of these, clients are offered no other versions."""


def _by_key() -> list[Api | None]:
    table: list[Api | None] = [None] * END
    for api in (
        Produce(),
        Fetch(),
        Metadata(),
        FindCoordinator(),
        ApiVersions(KNOWN),
        DescribeCluster(),
        ShareFetch(),
        ShareAcknowledge(),
    ):
        table[api.key] = api
        KNOWN[api.key] = api
    for answered in [*ANSWERED, SASL_HANDSHAKE, SASL_AUTHENTICATE]:
        KNOWN[answered.key] = answered
    return table


BY_KEY: Final = _by_key()
"""Those that it reads, on their way to the broker and back; None where it does not."""


def _between_brokers() -> list[Api | None]:
    table: list[Api | None] = [None] * END
    for api in BY_KEY:
        if api is not None and api.key in (PRODUCE, FETCH):
            table[api.key] = api
    return table


BETWEEN_BROKERS: Final = _between_brokers()
"""Those that it reads where brokers ask each other: Produce, because with acks=0 it has no answer."""
