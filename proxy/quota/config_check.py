"""ConfigCheck: whether configs of topics and brokers contradict each other, one change after the other.

A kind of quota whose configs can contradict each other has a check. Its cost for each change does not depend
on the number of topics and brokers.
"""

from collections.abc import Mapping

from proxy.quota.limits.resources import ConfigResource, Resources


class ConfigCheck:
    """Checks changes one after the other. It begins with the configs that are in force."""

    def __init__(self, resources: Resources) -> None:
        raise NotImplementedError

    def change(self, resource: ConfigResource, values: Mapping[str, str | None]) -> None:
        """Change values of a topic or a broker; None removes one."""
        raise NotImplementedError

    def undo(self) -> None:
        """Undo the last change."""
        raise NotImplementedError

    def conflict(self) -> str:
        """Why the values cannot be configured together; empty if they can."""
        raise NotImplementedError
