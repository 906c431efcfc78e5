"""Why a connection or a request failed, as text for people."""

import os
import socket


def explain(error: Exception, seconds: float) -> str:
    """Return why a connection or a request with a timeout of `seconds` failed."""
    if isinstance(error, TimeoutError):
        return f"no response within {seconds:g} s"
    if isinstance(error, EOFError):
        return "the server closed the connection without a response; is this a listener with TLS or SASL?"
    if isinstance(error, socket.gaierror):
        return f"cannot resolve the host name: {error.strerror}"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
