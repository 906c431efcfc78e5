"""Requests that are sent again while the server's error is retriable."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from kio.schema.errors import ErrorCode

from proxy.cli.quotas.changes import EntityAlteration
from proxy.cli.quotas.entity import Entity

Response = TypeVar("Response")
PAUSES: Final = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0)
"""Seconds before each retry: a controller or a proxy's store may be unavailable for some seconds."""


@dataclass(frozen=True, slots=True)
class RejectedAlteration:
    """An entity whose alteration the server rejected, with the reason."""

    entity: Entity
    reason: str


@dataclass(frozen=True, slots=True)
class AlterationResult:
    """What a response says about one entity."""

    entity: Entity
    code: ErrorCode
    message: str | None


def is_retriable(code: ErrorCode) -> bool:
    """Whether the same request may succeed later. A topic that is unknown does not appear by itself."""
    return code.retriable and code != ErrorCode.unknown_topic_or_partition


def reason(code: ErrorCode, message: str | None) -> str:
    """The server's message and the name of its error."""
    name = code.name.upper()
    return f"{message} ({name})" if message else name


async def ask_again(
    ask: Callable[[], Awaitable[Response]],
    code: Callable[[Response], ErrorCode],
    pauses: Sequence[float] = PAUSES,
) -> Response:
    """Return the first response whose error is not retriable, or the one after the last pause."""
    response = await ask()
    for pause in pauses:
        if not is_retriable(code(response)):
            break
        await asyncio.sleep(pause)
        response = await ask()
    return response


async def alter_again(
    batch: Sequence[EntityAlteration],
    alter: Callable[[Iterable[EntityAlteration]], Awaitable[Iterable[AlterationResult]]],
    why: Callable[[EntityAlteration, AlterationResult], str],
    pauses: Sequence[float] = PAUSES,
) -> list[RejectedAlteration]:
    """Send alterations; send those again whose errors are retriable. Return the rejected ones.

    alter  sends one request
    why    returns the reason of a rejection
    """
    rejections: list[RejectedAlteration] = []
    waiting: Mapping[Entity, EntityAlteration] = {entry.entity: entry for entry in batch}
    for pause in (*pauses, None):
        omitted = dict(waiting)
        retriable: dict[Entity, EntityAlteration] = {}
        for result in await alter(waiting.values()):
            entry = omitted.pop(result.entity, None)
            if entry is None or result.code == ErrorCode.none:
                continue
            if pause is not None and is_retriable(result.code):
                retriable[entry.entity] = entry
            else:
                rejections.append(RejectedAlteration(entry.entity, why(entry, result)))
        rejections += [RejectedAlteration(entity, "the server's response omits it") for entity in omitted]
        if pause is None or not retriable:
            break
        waiting = retriable
        await asyncio.sleep(pause)
    return rejections
