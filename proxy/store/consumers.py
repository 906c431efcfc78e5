"""stop_consumer(): ends a consumer of aiokafka."""

import asyncio
from typing import Any


async def stop_consumer(consumer: Any) -> None:
    """Stop a consumer, and close its connections. If a fetch waits for a retry, aiokafka's stop() cancels it,
    raises that CancelledError to us, and leaves the connections open.
    """
    task = asyncio.current_task()
    try:
        await consumer.stop()
    except asyncio.CancelledError:
        if task is None or task.cancelling():
            raise
        await consumer._client.close()
