"""Rules for configs of topics and brokers, for tests that concern neither kinds of quotas nor enforcement."""

from typing import Final

from proxy.quota.config_rules import ConfigRules
from proxy.quota.kinds.broker_bytes_in import ThresholdCheck
from proxy.quota.limits import config_keys
from proxy.quota.limits.resources import ConfigKey
from proxy.quota.quota import PER_BROKER, Quota, QuotaKind

CONFIG_KEYS: Final = tuple(value for value in vars(config_keys).values() if isinstance(value, ConfigKey))
KIND: Final = QuotaKind(
    name="configs",
    keys=(),
    scope=PER_BROKER,
    build=lambda: Quota(()),
    configs=CONFIG_KEYS,
    check=ThresholdCheck,
)
CONFIG_RULES: Final = ConfigRules([KIND])
FORWARDED: Final = ConfigRules([KIND], forwarded=frozenset([key.name for key in KIND.configs]))
"""The same rules on brokers that know the configs themselves."""


def too_much(topics: str, together: int, total: int) -> str:
    """The message if the thresholds of `topics` exceed that of the default broker."""
    return (
        f"bytes.in.per.sec.threshold of {topics} is {together} in all, more than "
        f"total.bytes.in.per.sec.threshold of every broker, which is {total}; "
        "lower the one or raise the other"
    )
