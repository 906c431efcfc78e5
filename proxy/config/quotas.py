"""The keys of `quotas`, as types; see proxy.config.settings."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from proxy.config.usage import TOPIC_NAME
from proxy.quota.limits.topic_limits import STORE_TOPIC
from proxy.security.settings import Changes, Text


class StoreTopic(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A compacted topic on the cluster of the first client listener that the proxy can log in to."""

    topic: Annotated[str, Meta(pattern=TOPIC_NAME)] = STORE_TOPIC
    """Topic for the quotas that are set with Kafka's tools. The proxy creates it if it is missing. All
    proxies of a cluster use the same topic. With `store: none` instead of this mapping, only this file has
    quotas, and the proxy rejects changes with tools."""


class Exempt(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Clients that are exempt from all quotas."""

    users: tuple[Text, ...] = ()
    """Users that are exempt from all quotas."""
    client_ids: tuple[Text, ...] = ()
    """Client ids that are exempt from all quotas. Clients choose their own client ids."""
    addresses: tuple[Text, ...] = ()
    """Addresses and networks (CIDR) that are exempt from all quotas."""


class Controller(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The measurement of controller mutations (KIP-599)."""

    window_num: Annotated[int, Meta(ge=1, le=3600)] = 11
    """`controller_mutation_rate`: number of samples, as in Kafka's controller.quota.window.num. An idle
    client accumulates up to window_num * window_size_seconds seconds of its quota."""
    window_size_seconds: Annotated[int, Meta(ge=1, le=3600)] = 1
    """`controller_mutation_rate`: length of a sample in seconds, as in Kafka's
    controller.quota.window.size.seconds."""


class ReplicationSettings(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The measurement and enforcement of replication quotas (KIP-73)."""

    window_num: Annotated[int, Meta(ge=1, le=3600)] = 11
    """Replication quotas: number of samples, as in Kafka's replication.quota.window.num."""
    window_size_seconds: Annotated[int, Meta(ge=1, le=3600)] = 1
    """Replication quotas: length of a sample in seconds, as in Kafka's
    replication.quota.window.size.seconds."""
    enforce: Literal["proxy", "broker", "both"] | None = None
    """Who enforces replication quotas. `proxy`: the proxy, on a replication listener; brokers do not receive
    these configs. `broker`: the brokers; the proxy forwards these configs to them. `both`: the proxy and the
    brokers. Default: `proxy` with a replication listener, otherwise `broker`."""


class Quotas(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The quotas, and how rates are measured."""

    store: StoreTopic | Literal["none"] = StoreTopic()
    """Where the proxy keeps quotas that are set with Kafka's tools."""
    scope: Literal["broker", "cluster"] = "broker"
    """What the quotas of users, client ids and addresses limit, unless an entry of `clients` has its own
    `scope`. `broker`: the usage on each broker, as in Kafka. `cluster`: the usage on all brokers together."""
    algorithm: Literal["pace", "window"] = "pace"
    """`pace` is a token bucket, which keeps the rate of every second near the quota. `window` is Kafka's
    sampled rate, with its bursts."""
    burst_seconds: Annotated[float, Meta(gt=0, le=3600)] = 1
    """`pace`: seconds of its quota that an idle client accumulates."""
    window_num: Annotated[int, Meta(ge=1, le=3600)] = 11
    """`window`: number of samples, as in Kafka's quota.window.num."""
    window_size_seconds: Annotated[int, Meta(ge=1, le=3600)] = 1
    """`window`: length of a sample in seconds, as in Kafka's quota.window.size.seconds."""
    max_throttle_seconds: Annotated[float, Meta(gt=0, le=86400)] = 10
    """Maximum throttle_time_ms that the proxy announces, in seconds. A client with a larger debt stays muted
    until the debt is paid. If a limit is raised or removed, a muted client benefits after at most this
    time."""
    mode: Literal["enforce", "observe"] | dict[str, str] = "enforce"
    """`observe`: the proxy measures and shows quotas as if it enforced them, but throttles no client. A
    mapping sets the mode of each quota; the proxy enforces quotas that it omits."""
    refusal_error: Literal["auto", 19, 89] = "auto"
    """Error code for producers whose partition or topic is rejected: 19 (NOT_ENOUGH_REPLICAS), which every
    client retries, or 89 (THROTTLING_QUOTA_EXCEEDED), which librdkafka and aiokafka do not retry. `auto` is
    89 for clients that are known to retry it (Java 2.7 or newer, kafka-python 3.0 or newer), otherwise 19."""
    callback: str | None = None
    """`package.module:Class` of a quota callback. The proxy calls it when it first sees a client, before it
    looks up the quotas of users and client ids: see docs/quota-callback.md."""
    callback_error: Literal["open", "closed"] = "open"
    """What happens if the callback fails for a client. `open`: the client has no limit. `closed`: its limit
    is one byte, percent or mutation per second."""
    exempt: Exempt = Exempt()
    """Clients that are exempt from all quotas."""
    controller: Controller = Controller()
    """The measurement of controller mutations."""
    changes: Changes = Changes()
    """Who can change quotas with Kafka's tools."""
    clients: tuple[dict[str, object], ...] = ()
    """Quotas of users, client ids and addresses. Each entry has an `entity` and its quotas, and may have a
    `scope`: see below."""
    topics: dict[str, object] = {}
    """Quotas of topics, by name, or `<default>` for all others: see below."""
    brokers: dict[str | int, object] = {}
    """Quotas of brokers, by node id, or `<default>` for all others: see below."""
    deleted_topic_configs: Literal["delete", "retain"] = "delete"
    """What happens to quotas that were set for a topic with tools when the topic is deleted. `delete`: the
    proxy deletes them, as brokers delete the topic's configs. `retain`: they apply to the next topic with the
    same name, so that a client cannot remove a limit by deleting the topic and creating it again. Quotas of
    this file always apply."""
    replication: ReplicationSettings = ReplicationSettings()
    """The measurement and enforcement of replication quotas."""
