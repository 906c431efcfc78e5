"""Why a connection or a request failed, as text for people."""

import os
import socket
import ssl


def explain(error: Exception, seconds: float) -> str:
    """Return why a connection or a request with a timeout of `seconds` failed."""
    if isinstance(error, TimeoutError):
        return f"no response within {seconds:g} s"
    if isinstance(error, EOFError):
        return "the server closed the connection without a response; is this a listener with TLS or SASL?"
    if isinstance(error, socket.gaierror):
        return f"cannot resolve the host name: {error.strerror}"
    if isinstance(error, ssl.SSLError):
        # Before the next case: its errno is a code of OpenSSL, and 1 would read "Operation not permitted".
        return _tls_failure(error)
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


def _tls_failure(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        why = getattr(error, "verify_message", "") or "the certificate is not valid"
        return f"the server's certificate is rejected: {why}"
    reason = error.reason or str(error)
    if reason == "WRONG_VERSION_NUMBER":
        return "the server does not speak TLS at this port"
    return f"the TLS handshake failed: {reason.replace('_', ' ').lower()}"
