"""Parts that the readers of the proxy's own topics share: the loop, and the end of an aiokafka consumer."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from aiokafka.errors import KafkaError

from proxy.tasks import Tasks

RETRY_SECONDS: Final = 0.5
"""The pause before a topic that was unavailable is read again."""
STOP_SECONDS: Final = 1.0
"""How long to wait for a consumer that stops. With TLS, closing a connection to a broker that hangs takes
30 s.
"""


async def follow(
    read: Callable[[], Coroutine[Any, Any, None]], set_problem: Callable[[str], None], tasks: Tasks
) -> None:
    """Follow a topic; never returns. `read` follows it until it is unavailable, and is then called again."""
    while True:
        # A separate task, so that no failure ends this loop, not even a cancellation raised by aiokafka.
        reading = tasks.start(read())
        await asyncio.wait([reading])
        if reading.cancelled() or reading.exception() is not None:
            set_problem("internal error while reading it; see the log")
        await asyncio.sleep(RETRY_SECONDS)


async def stop_consumer(consumer: Any, tasks: Tasks) -> None:
    """Stop a consumer, and close its connections; after STOP_SECONDS, in the background."""
    await asyncio.wait([tasks.start(_stop(consumer))], timeout=STOP_SECONDS)


async def _stop(consumer: Any) -> None:
    """Stop a consumer. If a fetch waits for a retry, aiokafka's stop() cancels it, raises that CancelledError
    to us, and leaves the connections open.
    """
    task = asyncio.current_task()
    try:
        with suppress(KafkaError):
            await consumer.stop()
    except asyncio.CancelledError:
        if task is None or task.cancelling():
            raise
        await consumer._client.close()
