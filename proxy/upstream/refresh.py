"""ClusterRefresh: keeps the view of a cluster up to date, over the proxy's own connection."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final
from uuid import UUID

from kio.schema.api_versions.v0.request import ApiVersionsRequest
from kio.schema.api_versions.v0.response import ApiVersionsResponse
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse

from proxy.errors import BadResponse, UpstreamUnavailable
from proxy.quota.cluster_view import NOTHING_KNOWN, ClusterView
from proxy.upstream.addresses import join_address
from proxy.upstream.broker_connection import BrokerConnection
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.failures import explain
from proxy.wire.addresses import BrokerAddress
from proxy.wire.api_keys import METADATA
from proxy.wire.apis.metadata_names import METADATA_VERSION, MetadataNames
from proxy.wire.error_codes import TOPIC_AUTHORIZATION_FAILED
from proxy.wire.errors import ProtocolError

log = logging.getLogger(__name__)
REFRESH_SECONDS: Final = 5.0
"""A broker that moves or joins is served within this many seconds, at the cost of one small request each."""
PARTITIONS_SECONDS: Final = 1.0
"""The same while a quota needs partitions: the broker quota divides a broker's rate among its topics."""
PARTITIONS_AT_A_TIME: Final = 1000
"""Partitions that are read between two turns of the event loop: about a millisecond."""
RETRY_SECONDS: Final = 0.5
"""The pause after a failed request."""
STALE_SECONDS: Final = 1.0
"""A view that seems to be stale is replaced once it is so old. While a broker is gone, each connection to it
fails, and a request for each of them would occupy the proxy and the other brokers.
"""
WANTED_AT_MOST: Final = 1000
"""Topics whose names are requested by their ids, while no broker responds; beyond these, all topics are."""
NAMES_AT_MOST: Final = 500_000
"""Names that are kept, of topics that exist and of deleted ones. If there are more, the cache is cleared."""
HIDDEN_AT_MOST: Final = 10_000
"""Known topics that the proxy may not describe. If there are more, all are forgotten."""
NAMED_AT_MOST: Final = 10
"""Addresses in an error message."""


class ClusterRefresh:
    """Requests metadata from one broker after another, every few seconds and on request."""

    def __init__(
        self,
        name: str,
        cluster_access: ClusterAccess,
        changed: Callable[[ClusterView], None],
        seen: Callable[[ClusterView], None] = lambda view: None,
        may_ask: bool = True,
    ) -> None:
        """`name` is for the log. `changed` is called with each view whose brokers differ from the last one,
        `seen` with every view. `may_ask`: whether the proxy may log in at brokers; if not, it only connects
        to one, and `changed` is called with the empty view each time that this works again.
        """
        self.view: ClusterView = NOTHING_KNOWN
        self.problem = "the cluster has not been asked yet"
        """Why the last metadata request failed; empty if it succeeded."""
        self._name: Final = name
        self.cluster_access: Final = replace(cluster_access, known=self._known_brokers)
        """How other parts connect to the cluster, too."""
        self._changed: Final = changed
        self._seen: Final = seen
        self._may_ask: Final = may_ask
        self._response_seconds: Final = cluster_access.connect_seconds * 2
        self._want_partitions = False
        self._want_all_names = False
        self.want_topics = False
        """Whether views have the names of all topics. Views with partitions always have them."""
        self.responded: Final = asyncio.Event()
        """Set after the first response, when `seen` has returned."""
        self._requested: Final = asyncio.Event()
        """Set when the next request, or its time, has to be determined again."""
        self._urgent = False
        """Whether the next request is due at once."""
        self._stale = False
        """Whether the next request is due when the last is STALE_SECONDS old."""
        self._broker: BrokerConnection | None = None
        self._topic_names: Final[dict[bytes, str]] = {}
        self._wanted_ids: set[bytes] = set()
        self._asked_ids: set[bytes] = set()
        """The ids whose names the request in flight asks for."""
        self._all_names_asked = False
        """Whether the request in flight is for the names of all topics, because they are wanted."""
        self._hidden_ids: Final[set[bytes]] = set()
        self.requests = 0
        """Metadata requests so far."""
        self.responses = 0
        """The number of the last request with a response: all that was wanted before it began is known."""

    def request_refresh(self) -> None:
        """Request metadata sooner than in a few seconds: something indicates that the view is stale."""
        self._stale = True
        self._requested.set()

    def _request_now(self) -> None:
        self._urgent = True
        self._requested.set()

    @property
    def want_partitions(self) -> bool:
        """Whether views have all of the cluster's partitions, and the names of all topics."""
        return self._want_partitions

    @want_partitions.setter
    def want_partitions(self, want: bool) -> None:
        if want and not self._want_partitions:
            self._request_now()
        self._want_partitions = want

    def topic_name(self, topic_id: bytes) -> str:
        """Return a topic's name in the newest view; empty if it is not known yet."""
        return self.view.topic_name(topic_id)

    def want_all_names(self) -> None:
        """Request the names of all current topics for the next view."""
        self._want_all_names = True
        self._request_now()

    def want_names(self, topic_ids: Iterable[bytes]) -> None:
        """Request the names of these topics for a later view."""
        unknown = [topic_id for topic_id in topic_ids if topic_id not in self._topic_names]
        if unknown:
            self._wanted_ids.update(unknown)
            if len(self._wanted_ids) > WANTED_AT_MOST:
                self._wanted_ids.clear()
                self._want_all_names = True
            self._request_now()

    def awaits_name(self, topic_id: bytes) -> bool:
        """Whether the topic's name has been requested from a cluster that can be reached."""
        wanted = topic_id in self._wanted_ids or topic_id in self._asked_ids
        return self.responds and (wanted or self._want_all_names or self._all_names_asked)

    def hides(self, topic_id: bytes) -> bool:
        """Whether the topic exists, and the proxy has no right to describe it."""
        return topic_id in self._hidden_ids

    @property
    def may_ask(self) -> bool:
        """Whether the proxy may make requests."""
        return self._may_ask

    @property
    def responds(self) -> bool:
        """Whether the last metadata request succeeded, and the proxy may make requests."""
        return self._may_ask and not self.problem

    async def run(self) -> None:
        """Request metadata until cancelled."""
        time = asyncio.get_running_loop().time
        while True:
            asked_at = time()
            kept = self._broker
            try:
                await self._ask()
            except (OSError, EOFError, UpstreamUnavailable) as error:
                self._disconnect()
                problem = self._explained(error)
                if kept is not None:
                    # A broker is gone, or hangs: the cluster is out of reach only if the others are, too.
                    self.cluster_access.note_failure(kept.address)
                    log.info("%s: broker %s: %s", self._name, join_address(*kept.address), problem)
                    continue
                if problem != self.problem:
                    about = {"listener": self._name}
                    log.warning("%s: metadata request failed: %s", self._name, problem, extra=about)
                self.problem = problem
                await asyncio.sleep(RETRY_SECONDS)
                continue
            await self._wait(asked_at)

    def _explained(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return explain(error, self._response_seconds)
        return str(error) or type(error).__name__

    async def _wait(self, asked_at: float) -> None:
        """Wait until the next request is due."""
        done_at = asyncio.get_running_loop().time()
        while not self._urgent:
            self._requested.clear()
            due = done_at + (PARTITIONS_SECONDS if self._want_partitions else REFRESH_SECONDS)
            if self._stale:
                due = min(due, asked_at + STALE_SECONDS)
            try:
                async with asyncio.timeout_at(due):
                    await self._requested.wait()
            except TimeoutError:
                return

    async def _ask(self) -> None:
        """Request metadata once. If it fails, what was wanted is wanted again."""
        self._urgent = self._stale = False
        if not self._may_ask:
            await self._look()
            return
        all_topics = self._want_partitions or self.want_topics or self._want_all_names
        self._asked_ids, self._wanted_ids = self._wanted_ids, set()
        self._all_names_asked, self._want_all_names = self._want_all_names, False
        answered = False
        try:
            await self._ask_for(all_topics)
            answered = True
        finally:
            if not answered:
                self._wanted_ids |= self._asked_ids
                self._want_all_names = self._want_all_names or self._all_names_asked
            self._asked_ids = set()
            self._all_names_asked = False

    async def _ask_for(self, all_topics: bool) -> None:
        """Request the metadata of all topics, or of those whose names are wanted."""
        topics = tuple(
            MetadataRequestTopic(topic_id=UUID(bytes=topic_id), name=None) for topic_id in self._asked_ids
        )
        request = MetadataRequest(
            topics=None if all_topics else topics,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        wants_more = self._want_partitions or self.want_topics or not self.responded.is_set()
        names_only = self._all_names_asked and not wants_more
        self.requests += 1
        number = self.requests
        # This has a timeout for each broker: brokers that do not respond must not hide the others.
        broker = await self._connected()
        async with asyncio.timeout(self._response_seconds):
            if names_only:
                await self._read_names(broker, request)
                self.responses = number
                self._seen(self.view)
                return
            response = await broker.ask(request, MetadataResponse)
        names: dict[bytes, str] = {}
        for topic in response.topics:
            if topic.topic_id is not None and topic.name is not None and topic.error_code == 0:
                names[topic.topic_id.bytes] = topic.name
            elif topic.topic_id is not None and topic.error_code == TOPIC_AUTHORIZATION_FAILED:
                self._hide(topic.topic_id)
        self._learn(names)
        if not response.brokers:
            raise BadResponse("the metadata response has no brokers")
        self._take(response, await _leaders(response) if all_topics else None)
        self.responses = number

    async def _read_names(self, broker: BrokerConnection, request: MetadataRequest) -> None:
        """Request names without the rest of a view: clients with unknown ids may cause this each second."""
        payload = await broker.ask_unread(request)
        try:
            read = MetadataNames(payload)
            broker.check(read.correlation_id)
            while True:
                if read.read(PARTITIONS_AT_A_TIME):
                    break
                await asyncio.sleep(0)
        except ProtocolError as error:
            raise BadResponse(f"Metadata v{METADATA_VERSION} does not parse: {error}") from error
        self._learn(read.names)

    def _learn(self, names: dict[bytes, str]) -> None:
        """Add names to the cache, which all views share. Clear it before, if it would become too large."""
        if len(self._topic_names) + len(names) > NAMES_AT_MOST:
            self._topic_names.clear()
        self._topic_names.update(names)

    def _hide(self, topic_id: UUID) -> None:
        if not self._hidden_ids:
            log.warning(
                "%s: the proxy may not describe topic %s; quotas by topic do not count Produce requests that "
                "name it by its id; grant the proxy's user Describe on all topics",
                self._name,
                topic_id,
            )
        if len(self._hidden_ids) >= HIDDEN_AT_MOST:
            self._hidden_ids.clear()
        self._hidden_ids.add(topic_id.bytes)

    async def _look(self) -> None:
        """Connect to a broker and disconnect: without a login, brokers respond to ApiVersions only, once."""
        await self._connected()
        self._disconnect()
        if self.problem:
            self.problem = ""
            self._changed(self.view)

    def _take(self, response: MetadataResponse, leaders: dict[tuple[str, int], int] | None) -> None:
        """Replace the view, and report it. `leaders` by topic and partition; None if not requested."""
        before = self.view
        nodes = self._allowed(response, before)
        self.view = ClusterView(response.cluster_id or "", nodes, self._topic_names, leaders)
        if before.cluster_id not in ("", self.view.cluster_id):
            log.warning(
                "%s: the brokers are those of another cluster now: %s instead of %s; quotas set by tools "
                "stay in force until this proxy reads the quota topic of that cluster, or restarts",
                self._name,
                self.view.cluster_id or "without an id",
                before.cluster_id,
            )
        if self.problem:
            log.info("%s: cluster %s has brokers %s", self._name, response.cluster_id, sorted(nodes))
        self.problem = ""
        if _addresses(before) != _addresses(self.view):
            self._changed(self.view)
        self._seen(self.view)
        self.responded.set()

    def _allowed(self, response: MetadataResponse, before: ClusterView) -> dict[int, BrokerAddress]:
        """Return the brokers at addresses that they may have. One that a broker names elsewhere keeps the
        address that it had. Raises BadResponse if there are none.
        """
        hosts = self.cluster_access.access.hosts
        nodes: dict[int, BrokerAddress] = {}
        for node in response.brokers:
            node_id = int(node.node_id)
            if hosts.allows(node.host, node.port):
                nodes[node_id] = BrokerAddress(node_id, node.host, node.port)
            elif node_id in before.nodes:
                nodes[node_id] = before.nodes[node_id]
        if not nodes:
            named = ", ".join(join_address(node.host, node.port) for node in response.brokers[:NAMED_AT_MOST])
            raise BadResponse(f"upstream.hosts allows none of the addresses that the broker names: {named}")
        return nodes

    async def _connected(self) -> BrokerConnection:
        if self._broker is not None and self._broker.session_ends:
            self._disconnect()
        if self._broker is not None:
            return self._broker
        cluster = self.cluster_access
        self._broker = await cluster.connect(cluster.addresses, _check)
        return self._broker

    def _known_brokers(self) -> list[tuple[str, int]]:
        """The brokers of the view."""
        return [(node.host, node.port) for node in self.view.nodes.values()]

    def _disconnect(self) -> None:
        if self._broker is not None:
            self._broker.close()
            self._broker = None

    def close(self) -> None:
        self._disconnect()


async def _check(broker: BrokerConnection) -> None:
    """Raise BadResponse if the broker does not support the proxy's version of Metadata."""
    response = await broker.ask(ApiVersionsRequest(), ApiVersionsResponse)
    newest = max((api.max_version for api in response.api_keys if api.api_key == METADATA), default=-1)
    if newest < METADATA_VERSION:
        raise BadResponse(
            f"the broker supports Metadata up to v{newest}; the proxy needs v12, of Kafka 3.1 or later"
        )


async def _leaders(response: MetadataResponse) -> dict[tuple[str, int], int]:
    """Return the leader of each partition of the topics without an error. Give the event loop turns."""
    found: dict[tuple[str, int], int] = {}
    done = 0
    for topic in response.topics:
        if topic.error_code != 0 or topic.name is None:
            continue
        for partition in topic.partitions:
            # kio's node ids are plain ints.
            found[topic.name, partition.partition_index] = partition.leader_id
        done += len(topic.partitions)
        if done >= PARTITIONS_AT_A_TIME:
            done = 0
            await asyncio.sleep(0)
    return found


def _addresses(view: ClusterView) -> dict[int, tuple[str, int]]:
    return {node.node_id: (node.host, node.port) for node in view.nodes.values()}
