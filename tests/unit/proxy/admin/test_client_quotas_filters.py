"""DescribeClientQuotas: Kafka's filters, row by row."""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from tests.support.admin.client_quotas_kit import RATE, ClientQuotasKit
from tests.support.messages.client_quotas import ANY, DEFAULT_NAME, EXACT

INVALID = ErrorCode.invalid_request


@pytest.fixture(params=[0, 1], ids=["v0", "v1"])
def kit(request: pytest.FixtureRequest) -> ClientQuotasKit:
    return ClientQuotasKit(request.param)


FILTERED = {
    "alice": (("user", "alice"),),
    "default user": (("user", None),),
    "user c": (("user", "c"),),
    "client c": (("client-id", "c"),),
    "default client": (("client-id", None),),
    "alice c": (("user", "alice"), ("client-id", "c")),
    "alice default": (("user", "alice"), ("client-id", None)),
    "default c": (("user", None), ("client-id", "c")),
    "ip": (("ip", "10.0.0.1"),),
    "default ip": (("ip", None),),
}


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, list(FILTERED)),
        ([], True, []),
        ([("user", EXACT, "alice")], False, ["alice", "alice c", "alice default"]),
        ([("user", EXACT, "alice")], True, ["alice"]),
        ([("user", DEFAULT_NAME, None)], False, ["default user", "default c"]),
        ([("user", DEFAULT_NAME, None)], True, ["default user"]),
        (
            [("user", ANY, None)],
            False,
            ["alice", "default user", "user c", "alice c", "alice default", "default c"],
        ),
        ([("user", ANY, None)], True, ["alice", "default user", "user c"]),
        ([("client-id", EXACT, "c")], False, ["client c", "alice c", "default c"]),
        ([("client-id", EXACT, "c")], True, ["client c"]),
        ([("client-id", ANY, None)], True, ["client c", "default client"]),
        ([("user", EXACT, "alice"), ("client-id", EXACT, "c")], True, ["alice c"]),
        ([("user", EXACT, "alice"), ("client-id", EXACT, "c")], False, ["alice c"]),
        ([("client-id", DEFAULT_NAME, None), ("user", EXACT, "alice")], True, ["alice default"]),
        ([("user", ANY, None), ("client-id", ANY, None)], True, ["alice c", "alice default", "default c"]),
        ([("user", ANY, None), ("client-id", EXACT, "c")], False, ["alice c", "default c"]),
        ([("ip", EXACT, "10.0.0.1")], True, ["ip"]),
        ([("ip", EXACT, "10.0.0.2")], True, []),
        ([("ip", DEFAULT_NAME, None)], False, ["default ip"]),
        ([("ip", ANY, None)], True, ["ip", "default ip"]),
        ([("user", EXACT, "bob")], True, []),
        ([("user", EXACT, "bob")], False, []),
        ([("user", EXACT, "")], True, []),
        ([("user", EXACT, "")], False, []),
        ([("user", EXACT, "<default>")], True, []),
    ],
)
async def test_filters(kit: ClientQuotasKit, components: Any, strict: bool, found: list[str]) -> None:
    for parts in FILTERED.values():
        key = "connection_creation_rate" if parts[0][0] == "ip" else RATE
        await kit.alter((parts, [(key, 5.0)]))
    shown = await kit.described(*components, strict=strict)
    assert shown.keys() == {FILTERED[name] for name in found}


@pytest.mark.parametrize(
    ("components", "code", "named"),
    [
        ([("", EXACT, "a")], INVALID, "empty"),
        ([("user", EXACT, "a"), ("user", ANY, None)], INVALID, "user"),
        ([("group", ANY, None)], ErrorCode.unsupported_version, "group"),
        ([("user", EXACT, None)], INVALID, "MATCH_TYPE_EXACT"),
        ([("user", DEFAULT_NAME, "a")], INVALID, "MATCH_TYPE_DEFAULT"),
        ([("user", ANY, "a")], INVALID, "MATCH_TYPE_SPECIFIED"),
        ([("user", 3, None)], INVALID, "3"),
        ([("ip", ANY, None), ("user", ANY, None)], INVALID, "ip"),
        ([("client-id", ANY, None), ("ip", EXACT, "::1")], INVALID, "ip"),
    ],
)
async def test_invalid_filters(kit: ClientQuotasKit, components: Any, code: ErrorCode, named: str) -> None:
    response = await kit.describe(*components)
    assert response.error_code == code
    assert named in response.error_message
    assert response.entries is None
