"""Who may what, for tests of requests about quotas."""

from proxy.admin.authority import Rights


class FixedRights(Rights):
    """May everything, or nothing."""

    def __init__(self, may: bool = True) -> None:
        self._may = may

    @property
    def sees_configs(self) -> bool:
        return self._may

    async def may_describe(self) -> bool:
        return self._may

    async def may_alter(self) -> bool:
        return self._may

    async def may_as_judged(self) -> bool:
        return self._may
