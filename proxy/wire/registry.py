"""The APIs that the proxy reads, by key."""

from typing import Final

from proxy.wire.api_00_produce import Produce
from proxy.wire.api_01_fetch import Fetch
from proxy.wire.api_03_metadata import Metadata
from proxy.wire.api_10_find_coordinator import FindCoordinator
from proxy.wire.api_18_api_versions import ApiVersions
from proxy.wire.api_60_describe_cluster import DescribeCluster
from proxy.wire.api_78_share_fetch import ShareFetch
from proxy.wire.api_79_share_acknowledge import ShareAcknowledge
from proxy.wire.apis import Api


def _by_key() -> list[Api | None]:
    table: list[Api | None] = [None] * 128
    for api in (
        Produce(),
        Fetch(),
        Metadata(),
        FindCoordinator(),
        ApiVersions(table),
        DescribeCluster(),
        ShareFetch(),
        ShareAcknowledge(),
    ):
        table[api.key] = api
    return table


BY_KEY: Final = _by_key()
"""None where an API is not read."""
