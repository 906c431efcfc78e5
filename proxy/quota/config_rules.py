"""ConfigRules: which configs of topics and brokers are quotas of the proxy, under its settings."""

from typing import Final, final

from proxy.quota.config_check import ConfigCheck
from proxy.quota.limits.resources import BROKER, TOPIC, ConfigKey, Resources
from proxy.quota.quota import QuotaKind

NONE: Final[frozenset[str]] = frozenset()


@final
class ConfigRules:
    """The configs of all kinds of quota, except those that the brokers keep."""

    def __init__(
        self,
        kinds: list[QuotaKind],
        left_to_brokers: frozenset[str] = NONE,
        forwarded: frozenset[str] = NONE,
        unenforced: frozenset[str] = NONE,
    ) -> None:
        """Each argument names some of the configs of the kinds:

        left_to_brokers  the proxy forwards requests about them, and knows nothing of them
        forwarded        the proxy enforces them and forwards them to the brokers, which do so too
        unenforced       setting them is an error, because neither the proxy nor a broker would enforce them
        """
        self.left_to_brokers: Final = left_to_brokers
        self.unenforced: Final = unenforced
        self.forwarded: Final = forwarded
        self._keys: Final[dict[str, dict[str, ConfigKey]]] = {TOPIC: {}, BROKER: {}}
        self._checks: Final = [kind.check for kind in kinds if kind.check is not None]
        for kind in kinds:
            for key in kind.configs:
                if key.name in left_to_brokers:
                    continue
                self._keys[key.resource][key.name] = key

    def keys(self, resource: str) -> dict[str, ConfigKey]:
        """The configs of a type of resource, by name; read-only."""
        return self._keys[resource]

    def checks(self, resources: Resources) -> list[ConfigCheck]:
        """Begin to check changes of these values."""
        return [check(resources) for check in self._checks]

    def conflict(self, resources: Resources) -> str:
        """Why these values cannot be configured together; empty if they can."""
        for check in self.checks(resources):
            problem = check.conflict()
            if problem:
                return problem
        return ""
