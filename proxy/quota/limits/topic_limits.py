"""The limit that a config of topics sets for a topic, and the topics to which no default limit applies."""

from typing import Final

from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota.limits.resources import TOPIC, ConfigKey, Resources

STORE_TOPIC: Final = "__quota_proxy_config"
USAGE_TOPIC: Final = "__quota_proxy_usage"
"""The default names of the store's topic and of the topic for usage events."""
SHARES_TOPIC: Final = "__quota_proxy_shares"
"""The default name of the topic by which proxies share limits. It is reserved even if they do not."""
_KAFKA_INTERNAL: Final = frozenset(["__consumer_offsets", "__transaction_state", "__share_group_state"])


def internal(resources: Resources, topic: str) -> bool:
    """Whether a topic is one of Kafka's internal topics (Topic.isInternal) or of the proxy's own.

    Names are compared as a whole: a client may choose any name that only begins like one of these.
    """
    return topic in _KAFKA_INTERNAL or topic in resources.proxy_topics


def topic_limit(resources: Resources, topic: str, key: ConfigKey) -> float:
    """The topic's own limit, else the default topic's, else UNLIMITED.

    The default does not apply to internal topics, because it would also stop consumer groups, transactions
    and the proxy's own store.
    """
    if internal(resources, topic):
        own = resources.own_number(TOPIC, topic, key.name)
        return UNLIMITED if own is None else own
    limit = resources.number(TOPIC, topic, key.name)
    return UNLIMITED if limit is None else limit
