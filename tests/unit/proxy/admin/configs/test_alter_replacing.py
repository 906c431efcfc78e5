"""AlterConfigs, which replaces all configs of a resource."""

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.limits.resources import TOPIC as TOPIC_RESOURCE
from proxy.quota.limits.resources import ConfigResource
from proxy.store.layers import Temporary
from tests.support.admin.configs_kit import (
    BROKER_1,
    FLAG,
    INVALID_CONFIG,
    INVALID_REQUEST,
    NONE,
    PART,
    RATE,
    REJECTED,
    REPLICAS,
    THEIRS,
    Kit,
    T,
    U,
)
from tests.support.admin.rights import FixedRights
from tests.support.messages.configs import (
    ALTER,
    SET,
    alter_request,
)
from tests.support.messages.kio_messages import request_frame, versions

every_alter = pytest.mark.parametrize("version", versions(ALTER))


class TestReplacing:
    @every_alter
    async def test_unnamed_configs_are_removed(self, version: int) -> None:
        file = {ConfigResource(TOPIC_RESOURCE, "t"): {PART: "3"}}
        kit = Kit(file)
        await kit.set((T, [(RATE, SET, "5"), (REPLICAS, SET, "*")]), (U, [(RATE, SET, "5")]))
        done = await kit.replace((T, {REPLICAS: "0:1", THEIRS: "60000"}), version=version)
        assert done == [(T, NONE, None)]
        assert kit.asked() == [(T, {THEIRS: "60000"})]
        assert kit.configs == {"topic t": {REPLICAS: "0:1"}, "topic u": {RATE: "5"}}
        assert await kit.replace((T, {}), version=version) == [(T, NONE, None)]
        assert kit.asked() == [(T, {})]
        assert kit.configs == {"topic u": {RATE: "5"}}

    async def test_resource_without_quota_configs_stores_nothing(self) -> None:
        kit = Kit()
        request = alter_request([(T, {THEIRS: "5"}), (BROKER_1, {"x": "y"})])
        await kit.alter(request)
        assert kit.broker.frames == [request_frame(request)]
        assert kit.log.records == []

    @every_alter
    async def test_invalid_config_is_rejected(self, version: int) -> None:
        """With the code that a controller returns for topics, and that for brokers."""
        kit = Kit()
        done = await kit.replace(
            (U, {RATE: None}), (T, {RATE: "0"}), (BROKER_1, {FLAG: "maybe"}), version=version
        )
        assert [code for _, code, _ in done] == [INVALID_REQUEST, INVALID_CONFIG, INVALID_REQUEST]
        assert kit.broker.asked == []

    async def test_unchanged_temporary_value_stays_temporary(self) -> None:
        """kafka-configs up to 3.9 does with brokers: no temporary value becomes a lasting one by it."""
        kit = Kit()
        resource = ConfigResource(TOPIC_RESOURCE, "t")
        kit.store._configs.layers.tools.set_temporary(resource, RATE, Temporary("5", 2_000_000))
        kit.store._configs.layers.refresh(resource, RATE, 0)
        assert await kit.replace((T, {RATE: "5", THEIRS: "1"})) == [(T, NONE, None)]
        assert kit.log.records == []

    @every_alter
    async def test_who_may_not_change_quotas_keeps_those_that_it_does_not_name(self, version: int) -> None:
        kit = Kit()
        await kit.set((T, [(RATE, SET, "5")]))
        kit.broker.rights = FixedRights(may=False, as_judged=True)
        assert await kit.replace((T, {THEIRS: "1"}), version=version) == [(T, NONE, None)]
        assert kit.asked() == [(T, {THEIRS: "1"})]
        [(_, code, _)] = await kit.replace((T, {RATE: "1000000"}), version=version)
        assert code == ErrorCode.topic_authorization_failed
        assert kit.configs == {"topic t": {RATE: "5"}}

    async def test_resource_rejected_by_the_broker_is_not_stored(self) -> None:
        kit = Kit(rejects={T: REJECTED})
        await kit.set((U, [(RATE, SET, "5")]))
        assert await kit.replace((T, {RATE: "5"}), (U, {})) == [(T, REJECTED, "because"), (U, NONE, None)]
        assert kit.configs == {}
