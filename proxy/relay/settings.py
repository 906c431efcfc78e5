"""RelaySettings: what the relays of one listener have in common."""

from typing import Final, final

from proxy.relay.large_frames import LargeFrames
from proxy.relay.login.authentication import Login
from proxy.wire.protected_topics import ProtectedTopics
from proxy.wire.registry import WITHOUT_INTERCEPTED, ApiTable
from proxy.wire.topic_names import TopicNames

NO_INTERCEPTED_APIS: Final[frozenset[int]] = frozenset()


@final
class RelaySettings:
    """Made once; the relays only read it, and change the memory and the names that they share."""

    def __init__(
        self,
        *,
        max_frame_bytes: int,
        apis: ApiTable = WITHOUT_INTERCEPTED,
        intercepted_api_keys: frozenset[int] = NO_INTERCEPTED_APIS,
        between_brokers: bool = False,
        login: Login | None = None,
        protected: ProtectedTopics | None = None,
        topic_names: TopicNames | None = None,
        large_frames: LargeFrames | None = None,
    ) -> None:
        self.max_frame_bytes: Final = max_frame_bytes
        """The most bytes that a request may have (socket.request.max.bytes)."""
        self.apis: Final = apis
        """The APIs that are read, and those that limit what ApiVersions offers."""
        self.intercepted_api_keys: Final = intercepted_api_keys
        """The APIs that the proxy answers; see RelayOutput.intercepted."""
        self.between_brokers: Final = between_brokers
        """Whether the client is a broker too. Its fetches are a follower's; no version is rejected."""
        self.login: Final = login
        """How clients are named by their logins; None if they are not."""
        self.protected: Final = protected
        """Topics that the client may not write; None for none."""
        self.topic_names: Final = TopicNames() if topic_names is None else topic_names
        self.large_frames: Final = LargeFrames() if large_frames is None else large_frames
        """The memory that connections share."""
