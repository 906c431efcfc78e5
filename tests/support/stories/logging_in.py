"""Logins through a relay: the listeners that tests use, and the steps of a login."""

import base64
import json
from typing import Any, Final

from kio.schema.errors import ErrorCode

from proxy.quota.engine import QuotaEngine
from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR
from proxy.relay.counters.traffic import Traffic
from proxy.relay.login.authentication import Login
from tests.support.messages.exchanges import opaque, responded
from tests.support.messages.kio_messages import Ports, read_frame, response_frame, response_type
from tests.support.messages.logins import AUTHENTICATE, RAW, handshake, handshaken, message, replied
from tests.support.stories.playbook import Playbook, drive

VERSIONS: Final = [0, 1, 2, RAW]
ALICE: Final = b"\0alice\0alices-secret"
BOB: Final = b"\0bob\0bobs-secret"
FIRST: Final = b"n,,n=alice,r=abc"
SERVER_FIRST: Final = b"r=abcdef,s=salt,i=4096"
FINAL: Final = b"c=biws,r=abcdef,p=proof"
SERVER_FINAL: Final = b"v=signature"
METADATA_LIKE: Final = 42
INTERCEPTED: Final = 49
UNNAMED: Final = Login("sub", "unnamed")
"""Requests of a login without a readable user count as those of the user `unnamed`."""
STRICT: Final = Login("sub", "")
"""A login without a readable user is rejected; this is the default."""


def login_story(traffic: Traffic, login: Login | None) -> Playbook:
    """A connection to a listener with this login; None: the listener does not read logins."""
    return Playbook(
        drive(
            QuotaEngine([]),
            Ports(),
            traffic,
            client_address="::1",
            intercepted_api_keys=frozenset([INTERCEPTED]),
            max_frame_bytes=2 << 20,
            login=login,
        )
    )


def users(traffic: Traffic) -> set[str]:
    """The users that have sent requests."""
    return {user for (user, _), counted in traffic.clients.items() if counted.bytes_in}


def jwt(user: str) -> bytes:
    """An unsigned token with this claim `sub`."""
    claims = base64.urlsafe_b64encode(json.dumps({"sub": user}).encode()).rstrip(b"=")
    return b"e30." + claims + b"."


def bearer(user: str, *extensions: bytes) -> bytes:
    """The client's first message of OAUTHBEARER."""
    parts = (b"auth=Bearer " + jwt(user), *extensions)
    return b"n,,\x01" + b"".join(part + b"\x01" for part in parts) + b"\x01"


def begin(story: Playbook, mechanism: str, version: int = 2) -> None:
    """Send a handshake, which the broker accepts."""
    asked = 0 if version == RAW else 1
    story.client(handshake(1, mechanism, asked)).to_broker(handshake(1, mechanism, asked))
    story.broker(handshaken(1, asked)).to_client(handshaken(1, asked))


def step(
    story: Playbook,
    number: int,
    token: bytes,
    reply: bytes,
    version: int = 2,
    error: ErrorCode = ErrorCode.none,
) -> None:
    """Forward a message and its response, both unchanged."""
    story.client(message(number, token, version)).to_broker(message(number, token, version))
    response = replied(number, reply, version, error)
    story.broker(response).to_client(response)


def request(story: Playbook, number: int = 50, api_key: int = METADATA_LIKE) -> None:
    """Forward a request and its response, both unchanged."""
    story.client(opaque(number, api_key)).to_broker(opaque(number, api_key))
    story.broker(responded(number)).to_client(responded(number)).idle()


def before_login(story: Playbook) -> None:
    """Send a request that no broker serves before the login: it ends the connection."""
    story.client_fails(opaque(60, METADATA_LIKE), reason=CLIENT_PROTOCOL_ERROR, says="before the login")


def local_response(story: Playbook, version: int = 2) -> Any:
    """The proxy's response to message 2, which replaces the broker's."""
    frame = b"".join(story.relay.take_to_client())
    response = read_frame(response_type(AUTHENTICATE, version), frame)
    assert response_frame(response, 2) == frame
    return response
