"""Probes: what a broker's error codes say of the rights of the client that asks."""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.probes import has_no_authorizer, lets_alter_quotas, lets_describe_quotas
from tests.support.messages.mutations import NO_TIME
from tests.support.messages.requests import build, part

NONE, REJECTED, UNKNOWN = (
    ErrorCode.none,
    ErrorCode.cluster_authorization_failed,
    ErrorCode.unknown_server_error,
)


class Broker:
    """Responds with one error code to everything."""

    def __init__(self, code: ErrorCode) -> None:
        self.asked: list[Any] = []
        self._code = code

    async def ask(self, request: Any, schema: Any) -> Any:
        self.asked.append(request)
        fields = {"throttle_time": NO_TIME, "error_code": self._code, "error_message": None}
        if schema.__name__ == "AlterClientQuotasResponse":
            entry = part(schema, "EntryData", error_code=self._code, error_message=None, entity=())
            return build(schema, throttle_time=NO_TIME, entries=(entry,))
        if schema.__name__ == "DescribeAclsResponse":
            return build(schema, **fields, resources=())
        return build(schema, **fields, entries=None)


@pytest.mark.parametrize(
    ("code", "missing"), [(ErrorCode.security_disabled, True), (REJECTED, False), (NONE, False)]
)
async def test_only_a_broker_without_an_authorizer_has_no_acls(code: ErrorCode, missing: bool) -> None:
    assert await has_no_authorizer(Broker(code)) is missing


@pytest.mark.parametrize(("code", "lets"), [(NONE, True), (UNKNOWN, True), (REJECTED, False)])
async def test_other_errors_than_that_of_authorization_come_after_it(code: ErrorCode, lets: bool) -> None:
    broker = Broker(code)
    assert await lets_describe_quotas(broker) is lets
    assert await lets_alter_quotas(broker) is lets
    assert broker.asked[1].validate_only, "it changes nothing"
