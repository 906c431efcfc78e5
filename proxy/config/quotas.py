"""The configuration file's part about quotas, as types; see proxy.config.settings."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from proxy.config.usage import TOPIC_NAME, Text
from proxy.security.settings import Changes


class StoreTopic(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A compacted topic on the first listener's cluster."""

    topic: Annotated[str, Meta(pattern=TOPIC_NAME)] = "__quota_proxy_config"
    """Topic for what is set with Kafka's tools, made where it is missing and shared by the cluster's proxies.
    `store: none` in its place: quotas are this file's alone, and changes with tools are rejected."""


class Exempt(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Whom no quota of quotas.clients holds for."""

    users: tuple[Text, ...] = ()
    """Users that no quota holds for."""
    client_ids: tuple[Text, ...] = ()
    """Client ids that no quota holds for. They are the client's own choice."""
    addresses: tuple[Text, ...] = ()
    """Addresses and networks (CIDR) that no quota holds for."""


class Controller(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """How controller mutations are measured."""

    window_num: Annotated[int, Meta(ge=1, le=3600)] = 11
    """`controller_mutation_rate`: samples kept, as in Kafka's controller.quota.window.num. An idle client
    saves up this times window_size_seconds of its quota."""
    window_size_seconds: Annotated[int, Meta(ge=1, le=3600)] = 1
    """`controller_mutation_rate`: seconds of each sample, as in Kafka's
    controller.quota.window.size.seconds."""


class ReplicationSettings(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """How replication is measured (KIP-73)."""

    window_num: Annotated[int, Meta(ge=1, le=3600)] = 11
    """Replication quotas: samples kept, as in Kafka's replication.quota.window.num."""
    window_size_seconds: Annotated[int, Meta(ge=1, le=3600)] = 1
    """Replication quotas: seconds of each sample, as in Kafka's replication.quota.window.size.seconds."""
    enforce: Literal["proxy", "broker", "both"] | None = None
    """Who holds followers to replication quotas. `proxy`: brokers never hear of them; it takes a replication
    listener. `broker`: they are Kafka's own configs, and pass. Where left out: `proxy` where there is a
    replication listener, else `broker`."""


class Quotas(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """How rates are measured, and the limits."""

    store: StoreTopic | Literal["none"] = StoreTopic()
    """Where quotas that are set with Kafka's tools are kept."""
    algorithm: Literal["pace", "window"] = "pace"
    """`pace` keeps every second near the quota (token bucket); `window` is Kafka's sampled rate, with its
    bursts."""
    burst_seconds: Annotated[float, Meta(gt=0, le=3600)] = 1
    """`pace`: seconds of quota that an idle client saves up."""
    window_num: Annotated[int, Meta(ge=1, le=3600)] = 11
    """`window`: samples kept, as in Kafka's quota.window.num."""
    window_size_seconds: Annotated[int, Meta(ge=1, le=3600)] = 1
    """`window`: seconds of each sample, as in Kafka's quota.window.size.seconds."""
    max_throttle_seconds: Annotated[float, Meta(gt=0, le=86400)] = 10
    """The longest that a byte rate makes a client wait at once; the rest stays as a debt. Clients give up at
    their request.timeout.ms, 30 s by default."""
    mode: Literal["enforce", "observe"] | dict[str, str] = "enforce"
    """`observe`: everything is measured and shown as if it were enforced, and nobody waits. Or a mapping from
    quotas to one of the two; those that it leaves out are enforced."""
    refusal_error: Literal["auto", 19, 89] = "auto"
    """Error code for producers whose partition or topic is rejected: 19 (NOT_ENOUGH_REPLICAS), which every
    client retries, or 89 (THROTTLING_QUOTA_EXCEEDED), which librdkafka and aiokafka take for final. `auto` is
    89 for clients that are known to retry it (Java from 2.7 on, kafka-python from 3.0 on), 19 for others."""
    callback: str | None = None
    """`package.module:Class` with rules of your own, asked before the quotas of users and client ids when a
    client is first seen: see docs/quota-callback.md."""
    callback_error: Literal["open", "closed"] = "open"
    """Whether clients are unlimited (`open`) or all but stopped (`closed`) for whom the callback fails."""
    exempt: Exempt = Exempt()
    """Whom no quota holds for."""
    controller: Controller = Controller()
    """How controller mutations are measured."""
    changes: Changes = Changes()
    """Who may change them with Kafka's tools."""
    clients: tuple[dict[str, object], ...] = ()
    """Limits of users, client ids and addresses: each has an `entity` and its quotas, see below."""
    topics: dict[str, object] = {}
    """Quotas of topics: by name, or `<default>` for all others, a mapping of configs, see below."""
    brokers: dict[str | int, object] = {}
    """Quotas of brokers: by node id, or `<default>` for all others, a mapping of configs, see below."""
    replication: ReplicationSettings = ReplicationSettings()
    """How replication is measured."""
