"""The limit of a topic that a config of topics gives, and which topics take no default limit."""

from typing import Final

from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.resources import TOPIC, ConfigKey, Resources

_KAFKA_INTERNAL: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state")
_PROXY_PREFIX: Final = "__quota_proxy_"


def internal(topic: str) -> bool:
    """Whether a topic is one of Kafka's internal topics (Topic.isInternal) or of the proxy's own."""
    return topic in _KAFKA_INTERNAL or topic.startswith(_PROXY_PREFIX)


def topic_limit(resources: Resources, topic: str, key: ConfigKey) -> float:
    """The topic's own limit, else the default topic's, else UNLIMITED.

    The default does not apply to internal topics: it would stop consumer groups, transactions and the
    proxy's own store along with the traffic that it is meant for.
    """
    if internal(topic):
        own = resources.own_number(TOPIC, topic, key.name)
        return UNLIMITED if own is None else own
    limit = resources.number(TOPIC, topic, key.name)
    return UNLIMITED if limit is None else limit
