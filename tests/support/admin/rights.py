"""Rights for tests of requests about quotas."""

from proxy.admin.authority import Rights
from proxy.relay.close_reasons import BrokerUnreachable


class FixedRights(Rights):
    """Rights that allow everything or nothing. `as_judged`: whether the broker allows changes; by default the
    same.
    """

    def __init__(self, may: bool = True, *, as_judged: bool | None = None) -> None:
        self._may = may
        self._as_judged = may if as_judged is None else as_judged

    @property
    def sees_configs(self) -> bool:
        return self._may

    async def may_describe(self) -> bool:
        return self._may

    async def may_alter(self) -> bool:
        return self._may

    async def may_as_judged(self) -> bool:
        return self._as_judged


class UnknownRights(FixedRights):
    """The rights are unknown, because the broker cannot be reached."""

    async def may_describe(self) -> bool:
        raise BrokerUnreachable("broker 1 is unreachable")

    async def may_alter(self) -> bool:
        raise BrokerUnreachable("broker 1 is unreachable")

    async def may_as_judged(self) -> bool:
        raise BrokerUnreachable("broker 1 is unreachable")
