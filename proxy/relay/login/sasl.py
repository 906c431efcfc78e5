"""SASL: the name in a client's messages of a login, and whether a server's message completes the login.

PLAIN (RFC 4616), SCRAM (RFC 5802) and OAUTHBEARER (RFC 7628) are parsed exactly as Kafka's servers parse
them: if a broker authenticates a message, the name read here is that user's, or UNREADABLE, and never
another's. Nothing but names is kept: no password, proof or token.
"""

import base64
import json
import re
from typing import Final

PLAIN: Final = "PLAIN"
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER: Final = "OAUTHBEARER"
READABLE: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
"""Kafka's own mechanisms. Clients may name others."""
UNREADABLE: Final = ""
"""Returned instead of a name. No name is empty."""

PLAIN_TOKENS: Final = 3
"""The parts authzid, user and password. Old brokers ignore the text after a further NUL; newer ones reject
it.
"""

# Kafka's patterns (ScramMessages, OAuthBearerClientInitialResponse). The texts that they are matched with are
# ASCII without NUL. `++` and `*+` do not backtrack, so that the time is linear in the size of the message.
SCRAM_FIRST: Final = re.compile(
    r"n,(?:a=(?P<authzid>[^,]++))?,(?:m=[^,]++,)?n=(?P<name>[^,]++),r=[!-+\--~]++"
    r"(?P<extensions>(?:,[A-Za-z]++=[^,]++)*+)"
)
OAUTH_FIRST: Final = re.compile(
    r"n,(?:a=(?P<authzid>[^,]++))?,\x01(?P<pairs>(?:[A-Za-z]++=[!-~ \t\r\n]++\x01)*+)\x01"
)
BEARER: Final = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +(?P<token>[-_~+/.a-zA-Z0-9]++=*)")
JWT: Final = re.compile(r"[^.]*\.(?P<payload>[-_a-zA-Z0-9]+)\.[^.]*")
MAX_PAYLOAD: Final = 64 << 10
"""In characters of base64, which is 48 KiB. Most tokens travel in HTTP headers and have a few thousand."""
DELEGATED: Final = ",tokenauth="
AUTH: Final = "\x01auth="


def readable(mechanism: str) -> bool:
    """Whether the messages of a mechanism can name a user."""
    return mechanism in READABLE


def single_message(mechanism: str) -> bool:
    """Whether each message of a client is a separate login: a server that has rejected an OAUTHBEARER token
    accepts another one.
    """
    return mechanism not in SCRAM


def claimed(mechanism: str, message: bytes) -> str:
    """Return the claim in a client's first message: the name, or the payload of a JWT that has it.

    Empty if there is none. Only name_of() parses the payload, after the broker has accepted the token: JSON
    takes much longer than anything else here, and any client may send it.
    """
    if mechanism == PLAIN:
        return _plain_name(message)
    if mechanism == OAUTHBEARER:
        return _payload(_ascii(message))
    if mechanism in SCRAM:
        return _scram_name(_ascii(message))
    return UNREADABLE


def name_of(mechanism: str, claim: str, oauth_claim: str) -> str:
    """Return the name in a result of claimed(), which a broker authenticates; UNREADABLE if there is no
    name.
    """
    return _subject(claim, oauth_claim) if mechanism == OAUTHBEARER else claim


def why_unreadable(mechanism: str, oauth_claim: str) -> str:
    """Why a login that the broker accepts has no readable name."""
    if mechanism == PLAIN:
        return "the user name is not UTF-8"
    if mechanism == OAUTHBEARER:
        return f"the token is not a JWT with a text as its claim {oauth_claim}"
    if mechanism in SCRAM:
        return "the owner of a delegation token is known to brokers only"
    return f"logins by {mechanism or 'no mechanism'} cannot be read"


def agreed(mechanism: str, message: bytes) -> bool:
    """Whether a server's message with error code 0 accepts the login.

    SCRAM's last one proves that the server knows the password. A rejected OAUTHBEARER token gets a reason
    with error code 0 first. Any message of a mechanism that cannot be read counts as acceptance: until the
    login is complete, the broker serves nothing.
    """
    if mechanism in SCRAM:
        return message.startswith(b"v=")
    if mechanism == OAUTHBEARER:
        return not message
    return True


def _ascii(message: bytes) -> str:
    """The text if it is ASCII without NUL, the only characters that Kafka accepts here; empty otherwise."""
    if not message.isascii() or b"\0" in message:
        return ""
    return message.decode("ascii")


def _plain_name(message: bytes) -> str:
    """`[authzid] NUL user NUL password`."""
    tokens = message.split(b"\0", PLAIN_TOKENS)
    if len(tokens) < PLAIN_TOKENS:
        return UNREADABLE
    try:
        return tokens[1].decode("utf-8")
    except UnicodeDecodeError:
        # A server replaces bytes that are not UTF-8, so two names may become one.
        return UNREADABLE


def _is_sasl_name(text: str) -> bool:
    """Whether `=` occurs only in the escapes `=2C` and `=3D`."""
    return "=" not in text.replace("=2C", ",").replace("=3D", ",")


def _scram_name(text: str) -> str:
    """`n,[a=authzid],[m=reserved,]n=name,r=nonce[,extension...]`. With the extension tokenauth=true the name
    is a delegation token's id, and the principal is its owner.
    """
    match = SCRAM_FIRST.fullmatch(text)
    if match is None:
        return UNREADABLE
    name = match["name"]
    if not _is_sasl_name(name) or not _is_sasl_name(match["authzid"] or ""):
        return UNREADABLE
    # The last of several extensions of one name is in force.
    _, found, value = match["extensions"].rpartition(DELEGATED)
    if found and value.partition(",")[0].lower() == "true":
        return UNREADABLE
    return name.replace("=2C", ",").replace("=3D", "=")


def _payload(text: str) -> str:
    """`n,[a=authzid],^Aauth=Bearer TOKEN^A[extension^A...]^A`; keys are case-sensitive, and the last of
    several pairs of one key is in force. The token's payload if it is a JWT (RFC 7519), in base64.
    """
    match = OAUTH_FIRST.fullmatch(text)
    if match is None or not _is_sasl_name(match["authzid"] or ""):
        return UNREADABLE
    _, found, value = ("\x01" + match["pairs"]).rpartition(AUTH)
    bearer = BEARER.fullmatch(value.partition("\x01")[0])
    if not found or bearer is None:
        return UNREADABLE
    jwt = JWT.fullmatch(bearer["token"])
    return UNREADABLE if jwt is None or len(jwt["payload"]) > MAX_PAYLOAD else jwt["payload"]


def _subject(payload: str, claim: str) -> str:
    """Return a claim of a JWT. UNREADABLE if it is not a text, or if validators may read it differently: JSON
    with a duplicate name, characters that are not Unicode, space around the name.
    """
    try:
        text = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)).decode("utf-8")
        claims = json.loads(text, object_pairs_hook=_unique)
        name = claims.get(claim) if isinstance(claims, dict) else None
        if not isinstance(name, str):
            return UNREADABLE
        name.encode("utf-8")
    except (ValueError, RecursionError):
        return UNREADABLE
    # Kafka's validator of signed tokens trims names as Java does, its unsecured one does not.
    return UNREADABLE if name[:1] <= " " or name[-1:] <= " " else name


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object. Raises ValueError if a name occurs twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found
