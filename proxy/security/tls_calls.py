"""Direct calls of OpenSSL for the data of a TLS connection.

An event loop calls read(), write() and pending() of an ssl.SSLObject for each message. They are Python
functions that only call the method of the same name of the C object behind it.
"""

import ssl
from typing import Final

_METHODS: Final = ("read", "write", "pending")


def call_directly(connection: ssl.SSLObject) -> ssl.SSLObject:
    """Let the methods of `connection` be those of its C object, and return it."""
    behind = getattr(connection, "_sslobj", None)
    if behind is not None:
        for name in _METHODS:
            setattr(connection, name, getattr(behind, name))
    return connection
