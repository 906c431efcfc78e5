"""Guesses the protocol of bytes that are not a Kafka request: most are from a client of another port."""


def looks_like(head: bytes) -> str:
    """Return a clause for the log about a connection's first bytes; empty if no protocol is recognized."""
    if head[:2] == b"\x16\x03":
        return "this looks like a TLS hello: on this port the client's security.protocol has to be PLAINTEXT"
    if head[:4] in (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI"):
        return "this looks like HTTP on a Kafka port"
    if head[:4] in (b"PROX", b"\r\n\r\n"):
        return "this looks like the PROXY protocol: set proxy_protocol on the listener"
    return ""
