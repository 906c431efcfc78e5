"""ProtectedTopics: by name as text and as bytes, and by the ids that were learned."""

from proxy.wire.cursor import NO_ID
from proxy.wire.protected_topics import ProtectedTopics

ID, OTHER = b"\1" * 16, b"\2" * 16


def test_a_name_is_compared_as_a_whole() -> None:
    topics = ProtectedTopics(frozenset(["ours"]))
    assert topics.has("ours", NO_ID)
    assert topics.has_raw_name(b"ours")
    for name in ("ours2", "our", "", None):
        assert not topics.has(name, NO_ID)
    assert not topics.has_raw_name(b"ours2")


def test_names_are_known_by_their_lengths_in_bytes() -> None:
    topics = ProtectedTopics(frozenset(["ours", "größe"]))
    assert [length for length in range(300) if topics.has_length(length)] == [4, 7]
    assert not any(ProtectedTopics(frozenset()).has_length(length) for length in range(300))


def test_ids_are_never_forgotten() -> None:
    topics = ProtectedTopics(frozenset(["ours"]))
    assert not topics.has_id(ID)
    topics.learn(frozenset([ID]))
    topics.learn(frozenset([OTHER]))
    for topic_id in (ID, OTHER):
        assert topics.has_id(topic_id)
        assert topics.has(None, topic_id)
    assert sorted(topics.spellings) == [ID, OTHER, b"ours"]
