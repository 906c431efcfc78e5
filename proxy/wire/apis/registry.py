"""ApiTable: the APIs that the proxy knows, by key."""

from typing import Final, final

from proxy.wire.api_keys import END, FETCH, PRODUCE
from proxy.wire.apis.api import Api
from proxy.wire.apis.api_00_produce import Produce
from proxy.wire.apis.api_01_fetch import Fetch
from proxy.wire.apis.api_03_metadata import Metadata
from proxy.wire.apis.api_10_find_coordinator import FindCoordinator
from proxy.wire.apis.api_18_api_versions import ApiVersions
from proxy.wire.apis.api_55_describe_quorum import DescribeQuorum
from proxy.wire.apis.api_60_describe_cluster import DescribeCluster
from proxy.wire.apis.api_78_share_fetch import ShareFetch
from proxy.wire.apis.api_79_share_acknowledge import ShareAcknowledge
from proxy.wire.apis.intercepted import InterceptedApi
from proxy.wire.apis.sasl_apis import SASL_AUTHENTICATE, SASL_HANDSHAKE


@final
class ApiTable:
    """The APIs of a process. Each list has an entry for every key, None for APIs that do not belong to it."""

    def __init__(self, intercepted: list[InterceptedApi]) -> None:
        """`intercepted`: the APIs that a layer above answers, from the files of their codecs."""
        self.known: Final[list[Api | None]] = [None] * END
        """APIs that are read or intercepted; clients are offered no other versions of them."""
        self.read: Final[list[Api | None]] = [None] * END
        """APIs that a relay reads, in requests and responses."""
        self.read_between_brokers: Final[list[Api | None]] = [None] * END
        """APIs that a relay reads where the client is a broker too."""
        for api in (
            Produce(),
            Fetch(),
            Metadata(),
            FindCoordinator(),
            ApiVersions(self.known),
            DescribeQuorum(),
            DescribeCluster(),
            ShareFetch(),
            ShareAcknowledge(),
        ):
            self.known[api.key] = api
            self.read[api.key] = api
        for known in [*intercepted, SASL_HANDSHAKE, SASL_AUTHENTICATE]:
            self.known[known.key] = known
        # Replication quotas need Fetch. Produce with acks=0 has no response, which only its reader knows.
        for key in (PRODUCE, FETCH):
            self.read_between_brokers[key] = self.read[key]


WITHOUT_INTERCEPTED: Final = ApiTable([])
"""Without intercepted APIs: for relays whose clients are brokers, which are offered every version."""
