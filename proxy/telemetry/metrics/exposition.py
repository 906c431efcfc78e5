"""Exposition: encodes the response to a scrape in steps, so that requests are served meanwhile."""

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Final, cast

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder

from proxy.telemetry.slices import Slices

SAMPLES_AT_A_TIME: Final = 50
"""Samples that are encoded in one step; they take well under a slice."""
END: Final = b"# EOF\n"
"""The last line of OpenMetrics."""
Encode = Callable[[CollectorRegistry], bytes]


async def exposition(steps: Iterable[Metric | None], accept: str) -> tuple[bytes, str]:
    """Return the text of all families and its content type, in the format that the client accepts.

    The event loop may run other work after each step (a None has no family) and after each part of a family.
    """
    encode, content_type = choose_encoder(accept)
    parts: list[bytes] = []
    ends = False
    slices = Slices()
    for step in steps:
        if step is not None:
            for part in _parts(step, encode):
                ends = ends or part.endswith(END)
                parts.append(part.removesuffix(END))
                await slices.give_way()
        await slices.give_way()
    if ends:
        parts.append(END)
    return b"".join(parts), content_type


class _One:
    """A registry of one family, as far as prometheus_client's encoders use it."""

    def __init__(self, family: Metric) -> None:
        self._family: Final = family

    def collect(self) -> list[Metric]:
        return [self._family]


def _parts(family: Metric, encode: Encode) -> Iterator[bytes]:
    """The family's text in parts; only the first has HELP and TYPE."""
    for start in range(0, max(len(family.samples), 1), SAMPLES_AT_A_TIME):
        part = copy(family)
        part.samples = family.samples[start : start + SAMPLES_AT_A_TIME]
        text = encode(cast("CollectorRegistry", _One(part)))
        while start and text.startswith(b"# ") and text != END:
            text = text.partition(b"\n")[2]
        yield text
