"""Produce requests that the relay forwards while they arrive, although it could read them whole.

Most of such a request does not pass the relay: the shell splices it. For the client, nothing changes: a
request streams only if no quota rejects partitions at the time and all topics are known, and if its first
part has the sizes of all partitions, so that the quotas charge it at once, as if all of it had come.

A broker reserves memory for the whole request when it knows its length. So a client first has to send
FIRST_PART_BYTES of a request, and LATER_PART_BYTES when it has sent a whole one that streamed.
"""

from contextlib import suppress
from typing import Final

from mypy_extensions import i64 as native

from proxy.quota.engine import QuotaEngine
from proxy.relay.requests.parser import RequestParser
from proxy.relay.settings import RelaySettings
from proxy.wire.api_keys import PRODUCE
from proxy.wire.apis.api import Api, RequestHeader, read_request_header
from proxy.wire.cursor import NO_ID
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Short
from proxy.wire.frames import Frame
from proxy.wire.keyed.keyed_arrays import UNCHECKED
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView
from proxy.wire.walk import has_all_sizes

STREAM_BYTES: Final[native] = 128 << 10
"""Only a larger request streams: the first part of a smaller one has most of its bytes."""
FIRST_PART_BYTES: Final[native] = 64 << 10
LATER_PART_BYTES: Final[native] = 4096


def may_stream(
    part: Frame, engine: QuotaEngine, parser: RequestParser, settings: RelaySettings, now: float
) -> bool:
    """Whether to forward a request of which the first part has come before the rest has."""
    if engine.may_reject(now):
        return False
    reader = Reader(list(part.pieces), LENGTH_SIZE)
    header = read_request_header(reader)
    api = parser.api(header) if header.api_key == PRODUCE else None
    if api is None or not api.oldest <= header.api_version <= api.newest:
        return False
    view = _read(reader, header, api, settings)
    if view.acks == 0 or view.topics > UNCHECKED or view.names_protected or not has_all_sizes(view.cursor):
        return False
    names = settings.topic_names
    return all(item.topic_id == NO_ID or names.known_name(item.topic_id) for item in view.items)


def _read(reader: Reader, header: RequestHeader, api: Api, settings: RelaySettings) -> RequestView:
    """Return the view of a request, as far as it has come."""
    flexible = header.api_version >= api.flexible_from
    view = RequestView(PRODUCE, header.api_version, 0, "", 0, flexible=flexible, want_items=True)
    view.partial = True
    view.protected_topics = settings.protected
    with suppress(Short):
        if flexible:
            reader.skip_tags()
        api.read_request(reader, view)
    return view
