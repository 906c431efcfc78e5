"""ConfigRules: the configs of topics and brokers that the kinds of quota have between them."""

from typing import Final, final

from proxy.quota.limits.resources import BROKER, TOPIC, ConfigKey, Resources
from proxy.quota.quota import QuotaKind

NONE: Final[frozenset[str]] = frozenset()


@final
class ConfigRules:
    """What may be configured."""

    def __init__(
        self,
        kinds: list[QuotaKind],
        left_to_brokers: frozenset[str] = NONE,
        passed_on: frozenset[str] = NONE,
        unenforced: frozenset[str] = NONE,
    ) -> None:
        """Of the kinds' configs, `left_to_brokers` are not ours; `passed_on` are ours and brokers' own;
        `unenforced` are ours and cannot be set, since nobody would enforce them.
        """
        self.left_to_brokers: Final = left_to_brokers
        self.unenforced: Final = unenforced
        self.passed_on: Final = passed_on
        self._keys: Final[dict[str, dict[str, ConfigKey]]] = {TOPIC: {}, BROKER: {}}
        self._conflicts: Final = [kind.conflict for kind in kinds if kind.conflict is not None]
        for kind in kinds:
            for key in kind.configs:
                if key.name in left_to_brokers:
                    continue
                self._keys[key.resource][key.name] = key

    def keys(self, resource: str) -> dict[str, ConfigKey]:
        """The configs of a topic or a broker, by name; not to be changed."""
        return self._keys[resource]

    def conflict(self, resources: Resources) -> str:
        """Why these cannot be configured together, in a sentence; empty when they can."""
        for conflict in self._conflicts:
            problem = conflict(resources)
            if problem:
                return problem
        return ""
