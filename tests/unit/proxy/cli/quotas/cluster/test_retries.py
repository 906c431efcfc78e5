"""Requests that are sent again while the server's error is retriable."""

from collections.abc import Iterable

import pytest
from kio.schema.errors import ErrorCode

from proxy.cli.quotas.changes import EntityAlteration
from proxy.cli.quotas.cluster.retries import (
    AlterationResult,
    RejectedAlteration,
    alter_again,
    ask_again,
    reason,
)
from proxy.cli.quotas.entity import Entity

AWAY = ErrorCode.coordinator_not_available
ALICE: Entity = (("user", "alice"),)
BOB: Entity = (("user", "bob"),)
NO_PAUSES = (0.0, 0.0)


@pytest.mark.parametrize(
    ("codes", "last"),
    [
        ([ErrorCode.none, AWAY], ErrorCode.none),
        ([AWAY, ErrorCode.invalid_request, ErrorCode.none], ErrorCode.invalid_request),
        ([AWAY, ErrorCode.unknown_topic_or_partition], ErrorCode.unknown_topic_or_partition),
        ([AWAY, AWAY, AWAY, ErrorCode.none], AWAY),
    ],
)
async def test_asks_while_the_error_is_retriable(codes: list[ErrorCode], last: ErrorCode) -> None:
    waiting = iter(codes)

    async def ask() -> ErrorCode:
        return next(waiting)

    assert await ask_again(ask, lambda code: code, NO_PAUSES) == last


async def test_only_retriable_alterations_are_sent_again_and_each_other_one_is_reported_once() -> None:
    requests: list[list[Entity]] = []
    responses = iter(
        [
            [(ALICE, AWAY), (BOB, ErrorCode.invalid_request), ((("user", "stranger"),), ErrorCode.none)],
            [],
        ]
    )

    async def alter(entries: Iterable[EntityAlteration]) -> list[AlterationResult]:
        requests.append([entry.entity for entry in entries])
        return [AlterationResult(entity, code, "why") for entity, code in next(responses)]

    batch = [EntityAlteration(entity, {"producer_byte_rate": 1.0}) for entity in (ALICE, BOB)]
    rejections = await alter_again(
        batch, alter, lambda entry, result: reason(result.code, f"{len(entry.values)}"), NO_PAUSES
    )
    assert requests == [[ALICE, BOB], [ALICE]]
    assert rejections == [
        RejectedAlteration(BOB, "1 (INVALID_REQUEST)"),
        RejectedAlteration(ALICE, "the server's response omits it"),
    ]


async def test_the_last_retriable_error_is_a_rejection() -> None:
    async def alter(entries: Iterable[EntityAlteration]) -> list[AlterationResult]:
        return [AlterationResult(entry.entity, AWAY, None) for entry in entries]

    batch = [EntityAlteration(ALICE, {"producer_byte_rate": 1.0})]
    rejections = await alter_again(batch, alter, lambda _, result: reason(result.code, None), NO_PAUSES)
    assert rejections == [RejectedAlteration(ALICE, "COORDINATOR_NOT_AVAILABLE")]
