"""Rejects requests that would occupy a broker, or exhaust its memory, with the names in them."""

from mypy_extensions import i64 as native

from proxy.relay.settings import RelaySettings
from proxy.wire.apis.api import RequestHeader
from proxy.wire.frames import Frame
from proxy.wire.keyed.checks import check_names


def check_request(settings: RelaySettings, frame: Frame, header: RequestHeader, body_at: int) -> native:
    """Check the names in a request; return the number of names. Raises Malformed. Followers may fetch any
    number of topics, whatever their names.
    """
    if settings.between_brokers:
        return 0
    return check_names(
        frame.pieces,
        body_at,
        header.api_key,
        header.api_version,
        frame.size,
        frame.complete,
        settings.max_topics_by_id,
    )
