"""What bytes that are no Kafka request look like: most are a client that talks to the wrong port."""


def looks_like(head: bytes) -> str:
    """A clause for the log, from a connection's first bytes; empty where they say nothing."""
    if head[:2] == b"\x16\x03":
        return "this looks like a TLS hello: on this port the client's security.protocol has to be PLAINTEXT"
    if head[:4] in (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI"):
        return "this looks like HTTP on a Kafka port"
    if head[:4] in (b"PROX", b"\r\n\r\n"):
        return "this looks like the PROXY protocol: set proxy_protocol on the listener"
    return ""
