"""The notes on names that no topic, broker or client has."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from proxy.errors import UpstreamUnavailable
from proxy.quota.identity import ANONYMOUS
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.server.console import missing
from proxy.server.console.missing import note_of_missing, note_of_user
from tests.support.server.consoles import Topics

NOPE = ConfigResource(TOPIC, "nope")
NOTE = "the topic nope does not exist"


class OtherTopics(Topics):
    """A cluster with other topics, one that responds with an error to all, or one that does not respond."""

    def __init__(self, ids: Mapping[str, bytes | None] | Exception | None) -> None:
        super().__init__()
        self.ids = ids
        self.known = [1, 2]

    async def topic_ids(self, node_id: int, names: Sequence[str]) -> Mapping[str, bytes | None]:
        if self.ids is None:
            await asyncio.Event().wait()
        if isinstance(self.ids, Exception):
            raise self.ids
        assert self.ids is not None
        return self.ids


async def test_brokers() -> None:
    clusters = [Topics(), OtherTopics({})]
    assert await note_of_missing(clusters, ConfigResource(BROKER, "2")) == ""
    note = await note_of_missing(clusters, ConfigResource(BROKER, "7"))
    assert note == "the cluster has no broker 7; its brokers: 1, 2"
    clusters[0].known = clusters[1].known = []
    assert await note_of_missing(clusters, ConfigResource(BROKER, "7")) == ""


async def test_topics() -> None:
    assert await note_of_missing([Topics()], NOPE) == NOTE
    assert await note_of_missing([Topics()], ConfigResource(TOPIC, "orders")) == ""
    assert await note_of_missing([Topics()], ConfigResource(TOPIC, DEFAULT_RESOURCE)) == ""
    assert await note_of_missing([], NOPE) == ""
    assert await note_of_missing([Topics(), OtherTopics({"nope": None})], NOPE) == NOTE
    assert await note_of_missing([Topics(), OtherTopics({"nope": b"1" * 16})], NOPE) == ""


async def test_no_note_without_a_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "SECONDS", 0.01)
    away = Topics()
    away.known = []
    silent, failing, forbidden = OtherTopics(None), OtherTopics(UpstreamUnavailable("away")), OtherTopics({})
    for cluster in (away, silent, failing, forbidden):
        assert await note_of_missing([Topics(), cluster], NOPE) == ("" if cluster is not away else NOTE)


def test_no_client_has_a_name_where_no_listener_identifies_users() -> None:
    assert "none is alice" in note_of_user("alice", identifies_users=False)
    assert note_of_user("a\nb", identifies_users=False).endswith("none is 'a\\nb'")
    assert note_of_user("alice", identifies_users=True) == ""
    assert [note_of_user(user, identifies_users=False) for user in ("", ANONYMOUS, "<default>")] == [
        "",
        "",
        "",
    ]
