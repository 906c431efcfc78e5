"""Rules for configs of topics and brokers, for tests that concern neither kinds of quotas nor enforcement."""

from typing import Final

from proxy.quota.config_rules import ConfigRules
from proxy.quota.limits import config_keys
from proxy.quota.limits.config_keys import BYTES_IN_THRESHOLD, TOTAL_BYTES_IN_THRESHOLD
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigKey, Resources
from proxy.quota.quota import PER_BROKER, Quota, QuotaKind


def too_much(resources: Resources) -> str:
    """Why the topics' thresholds exceed that of the default broker; empty if they do not."""
    total = resources.number(BROKER, DEFAULT_RESOURCE, TOTAL_BYTES_IN_THRESHOLD.name)
    parts = sum(map(int, resources.configured(TOPIC, BYTES_IN_THRESHOLD.name).values()))
    return f"{parts} is more than {total:g}" if total is not None and parts > total else ""


CONFIG_KEYS: Final = tuple(value for value in vars(config_keys).values() if isinstance(value, ConfigKey))
KIND: Final = QuotaKind(
    name="configs",
    keys=(),
    api_keys=(),
    scope=PER_BROKER,
    build=lambda: Quota(()),
    configs=CONFIG_KEYS,
    conflict=too_much,
)
CONFIG_RULES: Final = ConfigRules([KIND])
FORWARDED: Final = ConfigRules([KIND], forwarded=frozenset([key.name for key in KIND.configs]))
"""The same rules on brokers that know the configs themselves."""
