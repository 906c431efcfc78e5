"""The keys of the configuration file, as types. docs/configuration.md is generated from their docstrings.

`proxy.config.load` reads the file. A port of 0 means any free port.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import force_setattr, replace

from proxy.config.quotas import Quotas
from proxy.config.sharing import SharingSettings
from proxy.config.usable_cores import usable_cores
from proxy.config.usage import UsageSettings
from proxy.quota.limits.topic_limits import SHARES_TOPIC, STORE_TOPIC
from proxy.security.settings import Principal, Sni, Text, Tls, UpstreamSasl, UpstreamTls
from proxy.upstream.addresses import split_address
from proxy.wire.long_names import MAX_TOPIC_NAME

Port = Annotated[int, Meta(ge=0, le=65535)]
_SUFFIX: Final = "_shares"
"""Follows the name of a topic for quotas, in the default name of the topic for sharing."""
Seconds = Annotated[float, Meta(gt=0, le=86400)]


def _without_brackets(host: str) -> str:
    """The host, with the brackets removed that an IPv6 address has in URLs."""
    bracketed = host.startswith("[") and host.endswith("]") and ":" in host
    return host[1:-1] if bracketed else host


class Upstream(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The cluster behind a listener."""

    bootstrap: Annotated[tuple[Text, ...], Meta(min_length=1)] = ()
    """Brokers (HOST:PORT) from which the proxy discovers the cluster. The proxy tries them in order.
    Required, except on a replication listener."""
    brokers: dict[Annotated[int, Meta(ge=0)], Text] = {}
    """Replication listener only: the inter-broker address (HOST:PORT) of each broker, by node id."""
    hosts: Annotated[tuple[Text, ...], Meta(min_length=1)] = ()
    """Addresses that brokers may have: host names, IP addresses and networks (CIDR), each with or without
    :PORT. In a name, `*` stands for a part of a label; `*` alone is any host. The proxy connects to no other
    address that a broker names. The addresses in `bootstrap` are always allowed. Default: any address."""
    tls: UpstreamTls | None = None
    """TLS to the brokers."""
    sasl: UpstreamSasl | None = None
    """The login of the proxy's own connections."""

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """`bootstrap` as (host, port)."""
        return tuple(split_address(text) for text in self.bootstrap)


class ProxyProtocol(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Load balancers that state their clients' addresses by the PROXY protocol, version 1 or 2."""

    senders: Annotated[tuple[Text, ...], Meta(min_length=1)]
    """Addresses and networks (CIDR) of the load balancers. Each of their connections must begin with a PROXY
    header, and the address in it is the client's."""
    others: Literal["reject", "accept"] = "reject"
    """What happens to connections from other addresses. `accept`: the proxy serves them under their own
    address, and reads no header."""


class Listener(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """One cluster as its clients see it: a bootstrap port, and a port for each broker."""

    name: Text = "clients"
    """Name of the listener in metrics and logs. Each listener needs its own."""
    bind: Text = "127.0.0.1"
    """Address on which the listener's ports listen."""
    advertised_host: str = ""
    """Host that the proxy advertises to clients, as in Kafka's advertised.listeners. Default: the value of
    `bind`."""
    bootstrap_port: Port = 29092
    """Port for clients' bootstrap.servers. A replication listener has none."""
    broker_port_base: Port = 29100
    """The broker with node id N is served at this port + N. 0: each broker is served at any free port."""
    broker_port_count: Annotated[int, Meta(ge=1)] | None = None
    """Number of ports reserved for brokers, starting at broker_port_base. Only brokers with a lower node id
    get a port, and no other program may use a reserved port. Default: all ports up to the next one that this
    file uses on the same address."""
    advertised_broker_port_base: Annotated[int, Meta(ge=1, le=65535)] | None = None
    """The broker with node id N is advertised at this port + N. Set it if NAT, a NodePort or a load balancer
    forwards these ports to broker_port_base + N. Default: the port at which the proxy serves the broker."""
    advertised_brokers: dict[Annotated[int, Meta(ge=0)], Text] = {}
    """The address (HOST:PORT) at which a broker is advertised, by node id, if brokers have load balancers of
    their own. Other brokers are advertised at advertised_host."""
    reuse_port: bool = False
    """Whether other processes of the same user may serve the listener's ports too (SO_REUSEPORT). A successor
    can then start before this process ends."""
    replication: bool = False
    """Whether brokers use this listener to fetch from each other. Each broker advertises its port of this
    listener as its inter-broker listener. Such a listener has no bootstrap port, rejects no Produce request,
    and rewrites no address."""
    tls: Tls | None = None
    """TLS to the clients."""
    principal: Principal | None = None
    """How the proxy identifies clients."""
    sni: Sni | None = None
    """One port for all brokers, instead of bootstrap_port and broker_port_base."""
    proxy_protocol: ProxyProtocol | None = None
    """Load balancers that state their clients' addresses by the PROXY protocol."""
    upstream: Upstream

    @property
    def known_to_brokers(self) -> bool:
        """Whether brokers see the client's own principal. They see the proxy's principal if the proxy
        terminates the client's TLS and authenticates with its own certificate.
        """
        if self.principal is not None:
            return self.principal.source == "sasl"
        return self.upstream.tls is None or self.upstream.tls.certificate is None

    @property
    def asks(self) -> bool:
        """Whether the proxy can send its own requests to the cluster. If clients must log in, so must the
        proxy.
        """
        principal = self.principal
        return principal is None or principal.source != "sasl" or self.upstream.sasl is not None

    def __post_init__(self) -> None:
        if self.sni is not None:
            force_setattr(self, "bootstrap_port", self.sni.port)
            force_setattr(self, "broker_port_base", 0)
            force_setattr(self, "advertised_host", self.sni.bootstrap_host)
        force_setattr(self, "bind", _without_brackets(self.bind))
        force_setattr(self, "advertised_host", _without_brackets(self.advertised_host) or self.bind)


class Admin(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The port that serves /metrics, /healthz, /readyz and /api/quotas."""

    bind: Text = "127.0.0.1"
    """Address of the admin port. An address other than the loopback address requires a token, or `tls` with
    `client_auth: required`."""
    port: Port = 9644
    """The admin port."""
    token_file: Text | None = None
    """File with the token that requests must send (`Authorization: Bearer TOKEN`). Requests that change
    anything always need it. On an address other than the loopback address, all requests need it, except
    /healthz and the status code of /readyz."""
    token_env: Text | None = None
    """Environment variable with the token, instead of token_file."""
    tls: Tls | None = None
    """TLS on the admin port."""
    hosts: tuple[Text, ...] = ()
    """Host names in the URLs of requests without a token or certificate, which the loopback address serves.
    Requests with `localhost` or an IP address are always served. With any other name, a page of another site
    could read the admin port in a browser on this host (DNS rebinding)."""

    @property
    def has_token(self) -> bool:
        return self.token_file is not None or self.token_env is not None

    @property
    def by_certificate(self) -> bool:
        """Whether every client must present a certificate."""
        return self.tls is not None and self.tls.client_auth == "required"

    def __post_init__(self) -> None:
        force_setattr(self, "bind", _without_brackets(self.bind))


class ConnectionLimits(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Limits of client connections and frames, and timeouts."""

    max_connections: Annotated[int, Meta(ge=1)] = 20000
    """Maximum number of client connections on all listeners together. Further connections wait until others
    end. Each client connection has one broker connection, so the process needs twice as many file
    descriptors."""
    max_connections_per_ip: Annotated[int, Meta(ge=0)] = 0
    """Maximum number of client connections from one address. The proxy closes further ones. 0: no limit."""
    max_frame_bytes: Annotated[int, Meta(ge=1, le=2**31 - 1)] = 104857600
    """Maximum size of a request in bytes, as in Kafka's socket.request.max.bytes. A larger request closes its
    connection."""
    max_list_request_bytes: Annotated[int, Meta(ge=1, le=2**31 - 1)] = 524288
    """Maximum size in bytes of a client's request that lists partitions, topics or groups, such as Fetch,
    ListOffsets, Metadata and OffsetCommit, and of requests that are always small, such as Heartbeat. A larger
    request closes its connection. A broker works on each entry: a Fetch of 300,000 partitions, 8 MB, takes up
    to a second. An entry has 4 to 60 bytes, and the topic's name: the default allows a Fetch of 15,800
    partitions of few topics or of 10,200 topics, and Metadata of 9,000 topics with names of 40 characters.
    JoinGroup, SyncGroup, PushTelemetry and the requests of administrators may have eight times as many bytes.
    Produce has other limits."""
    max_list_bytes_in_flight: Annotated[int, Meta(ge=1, le=2**31 - 1)] = 65536
    """Maximum number of bytes that the lists of one client have in flight at one broker: requests of 4 KiB or
    more that list partitions, topics or groups. One list may always be in flight. Further ones wait in the
    proxy, which does not read their connections meanwhile: they would take all threads of the broker. A list
    counts until its response, and for at most a second; a Fetch for at most 20 ms and 1 ms per KB,
    because it may wait for records. A client is a principal, or an address without logins. Each process of
    `workers` has its own maximum."""
    max_topics_by_id: Annotated[int, Meta(ge=1, le=20000)] = 766
    """Maximum number of topics that a client's Metadata or DeleteTopics request may name by id. A larger
    request closes its connection. A consumer whose pattern the broker matches (KIP-848) names all topics that
    are assigned to it by id. Ids that do not exist cost a broker 0.14 s of processor time if there are 750 in
    a request, 0.9 s if there are 1,000, and 5 s if there are 2,000."""
    max_group_member_bytes: Annotated[int, Meta(ge=1, le=2**62)] = 67108864
    """Maximum number of bytes that the members of one client's groups may have at one broker: what they send
    with JoinGroup and SyncGroup, or with the heartbeats of newer kinds of groups, and 1 KiB for each. A
    broker keeps these bytes in its memory. A request that exceeds the maximum closes its connection. A member
    counts while its connection is open, and then until its session and a rebalance would have timed out, for
    at most 6 hours. A client is a principal, or an address without logins. Each process of `workers` has its
    own maximum."""
    idle_seconds: Seconds = 600
    """Seconds after which the proxy closes an idle connection, as in Kafka's connections.max.idle.ms."""
    handshake_seconds: Seconds = 10
    """Seconds within which a new client must send its first complete request."""
    connect_seconds: Seconds = 5
    """Timeout for connecting to a broker, in seconds."""
    shutdown_delay_seconds: Annotated[float, Meta(ge=0, le=3600)] = 0
    """Seconds between SIGTERM and the drain. Meanwhile /readyz returns 503, and the proxy still serves new
    connections: load balancers need this time to stop sending them. Another SIGTERM ends the delay."""
    drain_seconds: Annotated[float, Meta(ge=0, le=86400)] = 20
    """Seconds that a shutdown waits for outstanding responses, after shutdown_delay_seconds."""


class Metrics(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Optional families of /metrics."""

    topic_partitions: bool = False
    """Whether /metrics serves the families with partition labels. They can have many series."""


class LogSettings(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The log, on standard error. `--log-level` of `quota-proxy run` selects the least severe level."""

    format: Literal["text", "json"] = "text"
    """`text`: lines to read. `json`: an object per line, with `time`, `level`, `logger` and `message`, and if
    known `listener`, `address`, `user`, `client_id`, `broker`, `topic`, `process` and `exception`."""


class Settings(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The whole file."""

    cluster: Text = "kafka"
    """Name of the cluster in metrics and logs. Only proxies with the same name share limits."""
    listeners: Annotated[tuple[Listener, ...], Meta(min_length=1)]
    """The listeners; at least one."""
    workers: Annotated[int, Meta(ge=1, le=256)] | Literal["auto"] = 1
    """Number of processes that serve the listeners on this host; `auto`: one for each usable core. They share
    limits, also without `sharing`, and one admin port."""
    admin: Admin = Admin()
    """The admin port."""
    log: LogSettings = LogSettings()
    """The log."""
    limits: ConnectionLimits = ConnectionLimits()
    """Limits of client connections and frames, and timeouts."""
    quotas: Quotas = Quotas()
    """The quotas."""
    metrics: Metrics = Metrics()
    """Optional families of /metrics."""
    usage: UsageSettings | None = None
    """Usage events."""
    sharing: SharingSettings | bool | Literal["auto"] = "auto"
    """Whether several proxies enforce their limits together: `on`, `off`, or a mapping with the keys below.
    `auto`: on, unless `quotas.store` is `none`."""

    @property
    def worker_count(self) -> int:
        """The number of workers."""
        return usable_cores() if self.workers == "auto" else self.workers

    @property
    def client_listeners(self) -> tuple[Listener, ...]:
        """The listeners that are not for replication."""
        return tuple(listener for listener in self.listeners if not listener.replication)

    @property
    def proxy_topics(self) -> frozenset[str]:
        """The names of the topics that the proxy itself writes; the default one for sharing is reserved."""
        store = () if self.quotas.store == "none" else (self.quotas.store.topic,)
        usage = () if self.usage is None or self.usage.kafka is None else (self.usage.kafka.topic,)
        shares = () if self.shares is None else (self.shares.topic,)
        return frozenset([*store, *usage, *shares, SHARES_TOPIC])

    @property
    def shares(self) -> SharingSettings | None:
        """How limits are shared, with the name of the topic; None if they are not."""
        sharing, store = self.sharing, self.quotas.store
        if sharing is False or (sharing == "auto" and store == "none"):
            return None
        chosen = sharing if isinstance(sharing, SharingSettings) else SharingSettings()
        if chosen.topic:
            return chosen
        if store == "none" or store.topic == STORE_TOPIC:
            return replace(chosen, topic=SHARES_TOPIC)
        # Proxies with another topic for quotas have other quotas, and share with each other only.
        return replace(chosen, topic=f"{store.topic[: MAX_TOPIC_NAME - len(_SUFFIX)]}{_SUFFIX}")

    @property
    def replication_enforced_by(self) -> str:
        """`proxy`, `broker` or `both`."""
        has_listener = len(self.client_listeners) < len(self.listeners)
        return self.quotas.replication.enforce or ("proxy" if has_listener else "broker")
