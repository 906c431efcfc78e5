import pytest

from proxy.wire.edit import Edit, i16, i32
from proxy.wire.errors import Short
from proxy.wire.fetch.rewrite import FetchRewrite, Watermarks
from proxy.wire.reader import Reader


def rewrite(added: bytes = b"") -> FetchRewrite:
    made = FetchRewrite(11)
    made.session_mask = 0xFF
    made.added = added
    made.added_topics = 1 if added else 0
    return made


def head(error_code: int = 0, session_id: int = 5, topics: int = 2) -> bytes:
    return i16(error_code) + i32(session_id) + i32(topics)


@pytest.mark.parametrize(
    ("made", "read", "edits"),
    [
        (rewrite(), head(), [(2, i32(5 ^ 0xFF))]),
        (rewrite(), head(session_id=0), []),
        (rewrite(b"+"), head(session_id=0), [(6, i32(3) + b"+")]),
        (rewrite(b"+"), head(topics=0), [(2, i32(5 ^ 0xFF))]),
        (rewrite(b"+"), head(error_code=71, session_id=0), []),
    ],
)
def test_the_head_is_changed(made: FetchRewrite, read: bytes, edits: list[tuple[int, bytes]]) -> None:
    changes: list[Edit] = []
    topics = made.read_head(Reader([read]), changes)
    assert topics == int.from_bytes(read[-4:], "big")
    assert [(edit.start, edit.new) for edit in changes] == edits
    assert (made.error_code, i32(made.session_id)) == (int.from_bytes(read[:2], "big"), read[2:6])


def test_a_head_of_which_a_part_is_missing_is_short() -> None:
    with pytest.raises(Short):
        rewrite().read_head(Reader([head()[:-1]]), [])


def test_only_what_is_watched_is_noted() -> None:
    made = rewrite()
    marks = Watermarks()
    made.watched = {b"hot": {1: marks}}
    assert made.marks(b"hot", 1) is marks
    assert made.marks(b"hot", 2) is None
    assert made.marks(b"cold", 1) is None
