"""SASL: who somebody says to be, in the first message of a mechanism, and whether a server has agreed.

PLAIN (RFC 4616), SCRAM (RFC 5802), OAUTHBEARER (RFC 7628), as Kafka's brokers read them. Nothing here is
believed, and nothing but names is kept: no password, proof or token.
"""

import base64
import json
from typing import Final

PLAIN: Final = "PLAIN"
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER: Final = "OAUTHBEARER"
READABLE: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
"""Kafka's own; others are a client's to make up."""
UNREADABLE: Final = ""
"""In place of a name. No name is empty."""
BEARER: Final = "auth=bearer "


def readable(mechanism: str) -> bool:
    return mechanism in READABLE


def name_in(mechanism: str, token: bytes, oauth_claim: str) -> str:
    """The user in a client's first message; UNREADABLE where it names none."""
    if mechanism == PLAIN:
        parts = token.split(b"\0")
        return _text(parts[1]) if len(parts) == 3 else UNREADABLE
    if mechanism == OAUTHBEARER:
        return _subject(_text(token), oauth_claim)
    if mechanism in SCRAM:
        return _scram_name(_text(token))
    return UNREADABLE


def agreed(mechanism: str, token: bytes) -> bool:
    """Whether a server's message, under error code 0, ends the login well.

    SCRAM's last says that the server knows the password too; a rejected OAUTHBEARER token comes with a reason
    before the error. Of a mechanism that nobody reads, any will do: the broker lets nothing else through.
    """
    if mechanism in SCRAM:
        return token.startswith(b"v=")
    if mechanism == OAUTHBEARER:
        return not token
    return True


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _scram_name(text: str) -> str:
    """`n,[a=authzid],n=name,r=nonce[,extensions]`. Under a delegation token the name is the token's, and its
    owner is not said.
    """
    parts = text.split(",")
    if len(parts) < 4 or not parts[2].startswith("n=") or "tokenauth=true" in text.lower():
        return UNREADABLE
    return parts[2][2:].replace("=2C", ",").replace("=3D", "=")


def _subject(text: str, claim: str) -> str:
    """`n,[a=authzid],^Aauth=Bearer TOKEN^A...^A^A`; of a token that is a JWT (RFC 7519) the claim, if it is a
    text.
    """
    token = ""
    for part in text.split("\x01"):
        if part[: len(BEARER)].lower() == BEARER:
            token = part[len(BEARER) :].strip()
    parts = token.split(".")
    if len(parts) != 3:
        return UNREADABLE
    try:
        payload = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        claims = json.loads(payload)
    except (ValueError, RecursionError):
        return UNREADABLE
    if not isinstance(claims, dict):
        return UNREADABLE
    name = claims.get(claim)
    return name if isinstance(name, str) else UNREADABLE
