"""The configuration file, as types. `load` reads it; docs/configuration.md is made from the docstrings here.

A port of 0 is any free port. Unknown keys are rejected, and so is a file that contradicts itself.
"""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import force_setattr, replace

from proxy.config import document
from proxy.config.check_security import (
    check_admin,
    check_logins,
    check_security,
    open_files,
    with_absolute_paths,
)
from proxy.config.convert import convert
from proxy.config.frozen import compact
from proxy.config.ports import WILDCARDS, check_ports, meet, ports_in
from proxy.config.quotas import Quotas
from proxy.config.unknown_key import unknown
from proxy.config.usage import Text, UsageSettings, check_given, checked_usage
from proxy.errors import KeyPath, SettingsError, spell
from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.kinds.replication import kind as replication
from proxy.quota.limits.limit_source import LimitSource
from proxy.quota.limits.limits import ENFORCE, OBSERVE, Limits
from proxy.quota.networks import Networks
from proxy.quota_callback import load_callback
from proxy.security.settings import Principal, Sni, Tls, UpstreamSasl, UpstreamTls
from proxy.store.quota_store import FileQuotas
from proxy.store.yaml_file import read_clients
from proxy.store.yaml_resources import read_resources

Port = Annotated[int, Meta(ge=0, le=65535)]
Seconds = Annotated[float, Meta(gt=0, le=86400)]


class Upstream(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The cluster behind a listener."""

    bootstrap: Annotated[tuple[Text, ...], Meta(min_length=1)] = ()
    """Brokers (HOST:PORT) to learn the cluster from; the first that answers is enough. Needed but on a
    replication listener."""
    brokers: dict[Annotated[int, Meta(ge=0)], Text] = {}
    """On a replication listener: where each broker listens for its fellows, HOST:PORT by node id."""
    tls: UpstreamTls | None = None
    """TLS towards the brokers."""
    sasl: UpstreamSasl | None = None
    """How the proxy itself logs in."""

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """`bootstrap` as (host, port)."""
        return tuple(split_address(text) for text in self.bootstrap)


class Listener(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """One cluster, as clients see it: a bootstrap port, and a port for each broker."""

    name: Text = "clients"
    """The listener's name in metrics and logs; no two listeners share one."""
    bind: Text = "127.0.0.1"
    """Address on which its ports listen."""
    advertised_host: str = ""
    """Host that clients are told to connect to; the address in `bind` where left out."""
    bootstrap_port: Port = 29092
    """Port that clients have in their bootstrap.servers; a replication listener has none."""
    broker_port_base: Port = 29100
    """The broker with node id N is served at this port + N; with 0, each broker at any free port."""
    broker_port_count: Annotated[int, Meta(ge=1)] | None = None
    """How many ports, from broker_port_base on, are kept for brokers: node ids below it have a port, and
    nothing else may use one of them. Where left out: up to the next port that this file uses on the same
    address."""
    replication: bool = False
    """Whether this is where brokers fetch from each other: they advertise their inter-broker listeners at its
    broker ports. It has no bootstrap port, rejects nobody, and changes no address."""
    tls: Tls | None = None
    """TLS towards clients."""
    principal: Principal | None = None
    """How clients are named."""
    sni: Sni | None = None
    """One port for all brokers, in place of bootstrap_port and broker_port_base."""
    upstream: Upstream

    @property
    def known_to_brokers(self) -> bool:
        """Whether brokers take a client for what it is, and not for the proxy."""
        if self.principal is not None:
            return self.principal.source == "sasl"
        return self.upstream.tls is None or self.upstream.tls.certificate is None

    @property
    def asks(self) -> bool:
        """Whether the proxy itself may ask the cluster here: brokers on which clients log in want that of it
        too.
        """
        principal = self.principal
        return principal is None or principal.source != "sasl" or self.upstream.sasl is not None

    def __post_init__(self) -> None:
        if self.sni is not None:
            force_setattr(self, "bootstrap_port", self.sni.port)
            force_setattr(self, "broker_port_base", 0)
            force_setattr(self, "advertised_host", self.sni.bootstrap_host)
        force_setattr(self, "advertised_host", self.advertised_host or self.bind)


class Admin(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Where /metrics, /healthz, /readyz and /api/quotas are served."""

    bind: Text = "127.0.0.1"
    """Address of the admin port. Anything but the loopback takes a token, or tls that requires
    certificates."""
    port: Port = 9644
    """The admin port."""
    token_file: Text | None = None
    """File with the token that requests have to show (`Authorization: Bearer TOKEN`): all that change
    anything, and, on another address than the loopback, all but /healthz and whether /readyz is."""
    token_env: Text | None = None
    """Or the environment variable that has it."""
    tls: Tls | None = None
    """TLS on the admin port."""

    @property
    def has_token(self) -> bool:
        return self.token_file is not None or self.token_env is not None

    @property
    def by_certificate(self) -> bool:
        """Whether nobody gets in without a certificate."""
        return self.tls is not None and self.tls.client_auth == "required"


class ConnectionLimits(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """What the proxy takes from its clients at most, and for how long."""

    max_connections: Annotated[int, Meta(ge=1)] = 20000
    """Client connections at a time, all listeners together. Each has one broker connection, so the process
    needs twice as many file descriptors."""
    max_connections_per_ip: Annotated[int, Meta(ge=0)] = 0
    """Client connections at a time from one address; 0 for no such limit."""
    max_frame_bytes: Annotated[int, Meta(ge=1, le=2**31 - 1)] = 104857600
    """Bytes of the largest request, as in Kafka's socket.request.max.bytes; a larger one ends the
    connection."""
    idle_seconds: Seconds = 600
    """Seconds without a byte from either side after which a connection ends, as in Kafka's
    connections.max.idle.ms."""
    handshake_seconds: Seconds = 10
    """Seconds that a new client has until its first whole request is here."""
    connect_seconds: Seconds = 5
    """Seconds to wait for a broker to take a connection."""
    drain_seconds: Annotated[float, Meta(ge=0, le=86400)] = 20
    """Seconds that a shutdown waits for answers in flight."""


class Metrics(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """What /metrics shows beyond the standard families."""

    topic_partitions: bool = False
    """Whether the families with topic and partition labels are served; they can be many."""


class Settings(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The whole file."""

    cluster: Text = "kafka"
    """The cluster's name in metrics and logs."""
    listeners: Annotated[tuple[Listener, ...], Meta(min_length=1)]
    """At least one; each is a cluster's set of ports."""
    admin: Admin = Admin()
    """The admin port."""
    limits: ConnectionLimits = ConnectionLimits()
    """Limits of connections and frames."""
    quotas: Quotas = Quotas()
    """The quotas."""
    metrics: Metrics = Metrics()
    """Choices about /metrics."""
    usage: UsageSettings | None = None
    """What every client has used, as events."""

    @property
    def client_listeners(self) -> tuple[Listener, ...]:
        """Those that are not for replication."""
        return tuple(listener for listener in self.listeners if not listener.replication)

    @property
    def replication_enforced_by(self) -> str:
        """`proxy`, `broker` or `both`."""
        has_listener = len(self.client_listeners) < len(self.listeners)
        return self.quotas.replication.enforce or ("proxy" if has_listener else "broker")

    def broker_ports(self, listener: Listener) -> range:
        """Ports that this listener's brokers may have, that of node id 0 first.

        Empty where broker_port_base is 0: each broker then has any free port.
        """
        base = listener.broker_port_base
        if base == 0:
            return range(0)
        if listener.broker_port_count is not None:
            return range(base, base + listener.broker_port_count)
        others = [port for _, bind, port in ports_in(self) if port > base and meet(bind, listener.bind)]
        return range(base, min(others, default=65536))


@compact
def load(path: Path, *, with_files: bool = False) -> Settings:
    """Reads and checks the file; SettingsError says what is wrong, with file, line and key.

    `with_files`: whether the files that it names have to be there and usable.
    """
    file = document.read(path)
    try:
        if file.value is None:
            raise SettingsError("is empty; it takes at least a listener with upstream.bootstrap")
        check_given(file.value)
        folder = path.absolute().parent
        settings = with_absolute_paths(convert(file.value, Settings), folder)
        store = settings.quotas.store
        usage = checked_usage(settings.usage, folder, "" if store == "none" else store.topic)
        settings = replace(settings, usage=usage)
        _check_listeners(settings)
        check_ports(settings)
        check_admin(settings)
        check_logins(settings)
        _check_quotas(settings)
        if with_files:
            open_files(settings)
    except SettingsError as error:
        raise file.locate(error) from error
    return settings


def config_rules(settings: Settings) -> ConfigRules:
    """Which configs of topics and brokers are quotas of the proxy's own."""
    enforce = settings.replication_enforced_by
    every = frozenset(key.name for key in replication.CONFIGS)
    native = frozenset(key.name for key in replication.NATIVE)
    return ConfigRules(
        load_kinds(),
        left_to_brokers=native if enforce == "broker" else frozenset(),
        passed_on=native if enforce == "both" else frozenset(),
        # A broker keeps what it does not know, and shows it as a secret.
        unenforced=every - native if enforce == "broker" else frozenset(),
    )


def file_quotas(settings: Settings) -> FileQuotas:
    """The file's part in the store of quotas."""
    quotas = settings.quotas
    source = None if quotas.callback is None else load_callback(quotas.callback, quotas.callback_error)
    return FileQuotas(
        partial(limits, quotas, source),
        replace(quotas, clients=(), topics={}, brokers={}),
        read_clients(quotas.clients, ("quotas", "clients")),
        read_resources(quotas.topics, quotas.brokers, config_rules(settings), ("quotas",)),
    )


def limits(
    settings: Quotas, source: LimitSource | None, quotas: Mapping[QuotaEntity, Mapping[str, float]]
) -> Limits:
    """These quotas, under the file's settings, as the snapshot that the quota engine takes."""
    mode = settings.mode
    return Limits(
        quotas,
        algorithm=settings.algorithm,
        burst_seconds=settings.burst_seconds,
        samples=settings.window_num,
        window_seconds=settings.window_size_seconds,
        exempt_users=list(settings.exempt.users),
        exempt_client_ids=list(settings.exempt.client_ids),
        exempt_cidrs=list(settings.exempt.addresses),
        mode=ENFORCE if isinstance(mode, dict) else mode,
        modes=dict(mode) if isinstance(mode, dict) else None,
        max_throttle_seconds=settings.max_throttle_seconds,
        mutation_samples=settings.controller.window_num,
        mutation_window_seconds=settings.controller.window_size_seconds,
        replication_samples=settings.replication.window_num,
        replication_window_seconds=settings.replication.window_size_seconds,
        rejection_error=0 if settings.refusal_error == "auto" else settings.refusal_error,
        source=source,
    )


def split_address(text: str) -> tuple[str, int]:
    """HOST:PORT as its parts, an IPv6 host in brackets; ValueError for anything else."""
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/\[\]]+)):(\d{1,5})", text)
    if match is None or not 1 <= int(match[3]) <= 65535:
        raise ValueError(f"expected HOST:PORT, got {text!r}")
    return match[1] or match[2], int(match[3])


def _check_quotas(settings: Settings) -> None:
    if settings.quotas.callback is not None:
        try:
            load_callback(settings.quotas.callback, settings.quotas.callback_error)
        except ValueError as error:
            raise SettingsError(str(error), ("quotas", "callback")) from error
    enforce = settings.quotas.replication.enforce
    if enforce not in (None, "broker") and len(settings.client_listeners) == len(settings.listeners):
        problem = f"{enforce} takes a replication listener (listeners[].replication), and there is none"
        raise SettingsError(problem, ("quotas", "replication", "enforce"))
    file_quotas(settings)
    mode = settings.quotas.mode
    if isinstance(mode, dict):
        known = [key.name for kind in load_kinds() for key in kind.keys]
        known += [key.name for kind in load_kinds() for key in kind.configs]
        for name, value in mode.items():
            if name not in known:
                raise unknown(("quotas", "mode", name), known)
            if value not in (ENFORCE, OBSERVE):
                problem = f"expected one of {ENFORCE}, {OBSERVE}, got {value!r}"
                raise SettingsError(problem, ("quotas", "mode", name))
    for place, address in enumerate(settings.quotas.exempt.addresses):
        try:
            Networks([address])
        except ValueError as error:
            problem = f"{error}; expected an address or a network such as 10.0.0.0/8"
            raise SettingsError(problem, ("quotas", "exempt", "addresses", place)) from error


def _check_listeners(settings: Settings) -> None:
    names: dict[str, int] = {}
    for place, listener in enumerate(settings.listeners):
        key: KeyPath = ("listeners", place)
        first = names.setdefault(listener.name, place)
        if first != place:
            other = spell(("listeners", first))
            problem = f"{listener.name!r} is the name of {other} too; give each listener its own"
            raise SettingsError(problem, (*key, "name"))
        if listener.advertised_host in WILDCARDS:
            problem = (
                f"no client can connect to {listener.advertised_host}; set the host that clients shall use"
            )
            raise SettingsError(problem, (*key, "advertised_host"))
        if listener.replication:
            _check_brokers(settings, listener, (*key, "upstream"))
        else:
            _check_upstream(settings, listener, (*key, "upstream"))
        check_security(listener, key)
    if not settings.client_listeners:
        problem = "there is none for clients; a replication listener needs one, to know its cluster by"
        raise SettingsError(problem, ("listeners",))
    asking = any(listener.asks for listener in settings.client_listeners)
    if not asking and len(settings.client_listeners) < len(settings.listeners):
        problem = (
            "none lets the proxy ask the cluster which replicas are in sync; a replication listener needs "
        )
        raise SettingsError(f"{problem}needs that: give one of the others upstream.sasl", ("listeners",))


def _check_brokers(settings: Settings, listener: Listener, key: KeyPath) -> None:
    """The upstream of a replication listener."""
    if listener.upstream.bootstrap:
        problem = "a replication listener takes upstream.brokers instead: the cluster itself says the proxy's"
        raise SettingsError(f"{problem} own addresses", (*key, "bootstrap"))
    if not listener.upstream.brokers:
        problem = "has to be given for a replication listener: HOST:PORT by node id, for every broker"
        raise SettingsError(problem, (*key, "brokers"))
    ports = settings.broker_ports(listener)
    for node_id, text in listener.upstream.brokers.items():
        place = (*key, "brokers", str(node_id))
        try:
            address = split_address(text)
        except ValueError as error:
            raise SettingsError(str(error), place) from error
        if listener.broker_port_base == 0:
            continue
        if listener.broker_port_base + node_id not in ports:
            problem = f"its port would be {listener.broker_port_base + node_id}, and brokers' ports end at "
            raise SettingsError(f"{problem}{ports[-1]}; raise broker_port_count", place)
        if address[1] in ports and meet(address[0], listener.bind):
            raise SettingsError(f"{text} is this proxy itself; expected a broker", place)


def _check_upstream(settings: Settings, listener: Listener, key: KeyPath) -> None:
    if listener.upstream.brokers:
        problem = "is for replication listeners; this one learns its brokers from upstream.bootstrap"
        raise SettingsError(problem, (*key, "brokers"))
    if not listener.upstream.bootstrap:
        raise SettingsError("has to be given", (*key, "bootstrap"))
    key = (*key, "bootstrap")
    own = [(own.bind, own.bootstrap_port) for own in settings.listeners]
    own += [(own.advertised_host, own.bootstrap_port) for own in settings.listeners]
    for place, text in enumerate(listener.upstream.bootstrap):
        try:
            address = split_address(text)
        except ValueError as error:
            raise SettingsError(str(error), (*key, place)) from error
        if address in own:
            raise SettingsError(f"{text} is this proxy itself; expected a broker", (*key, place))
