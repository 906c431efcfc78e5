"""Layouts: fields with their versions, and arrays."""

from proxy.wire.keyed.layout import BYTES, LAST, NUMBERS, STRING, STRINGS, STRUCTURES, UUID, RequestLayout


def test_fields_have_kinds_and_sizes() -> None:
    fields = RequestLayout(1, 0, "i s B u *q *s").fields
    assert [field.kind for field in fields[1:]] == [STRING, BYTES, UUID, NUMBERS, STRINGS]
    assert [fields[at].size for at in (0, 3, 4)] == [4, 16, 8]


def test_fields_have_versions() -> None:
    fields = RequestLayout(9, 6, "i i@3+ i@-4").fields
    assert [(field.since, field.until) for field in fields] == [(0, LAST), (3, LAST), (0, 4)]


def test_arrays_of_structures_may_have_others() -> None:
    [outer] = RequestLayout(0, 0, "{1@2+ s {0 i } {2 b s } }").fields
    assert (outer.kind, outer.since, outer.keys, outer.nests) == (STRUCTURES, 2, 1, True)
    assert [(field.keys, len(field.fields)) for field in outer.fields[1:]] == [(0, 1), (2, 2)]
    assert not outer.fields[2].nests
