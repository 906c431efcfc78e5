"""What a TLS peer has sent before it ends the connection is not lost."""

import asyncio
from typing import Any, cast


def keep_unread_data(transport: asyncio.BaseTransport) -> None:
    """Have the event loop stop reading a TLS connection's socket while received bytes wait to be decrypted.

    Otherwise it goes on up to 256 KiB, and drops all of these bytes when it reads the end of the connection.
    """
    # asyncio's types have no such method for transports that are read from.
    cast("Any", transport).set_read_buffer_limits(high=1, low=0)
