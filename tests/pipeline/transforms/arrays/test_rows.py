"""Rows: texts as numbers, whatever the tables that they come from, and hashes that are always the same."""

from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from pipeline.transforms.arrays.rows import (
    MISSING,
    NULL,
    Rows,
    constant,
    from_arrow,
    hashed,
    is_constant,
    narrow,
    picked,
    together,
)

USERS = ["b", None, "a", "b", ""]


def table(kind: Any) -> Any:
    users = [pa.array(part).cast(kind) for part in (USERS[:2], USERS[2:])]
    numbers = [pa.array(part, pa.int32()) for part in ([5, None], [5, -1, 0])]
    return pa.table({"user": pa.chunked_array(users), "partition": pa.chunked_array(numbers)})


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_texts_and_nulls_are_numbers(kind: Any) -> None:
    rows = from_arrow(table(kind))
    assert len(rows) == len(USERS)
    assert rows["partition"].tolist() == [5, MISSING, 5, -1, 0]
    (found,) = rows.values(["user"], np.arange(5))
    assert found.to_pylist() == USERS
    assert found.type == pa.string()
    some = rows.take(np.array([3, 1]))
    assert [value.to_pylist() for value in some.values(["user"], np.array([1, 0]))] == [[None, "b"]]
    assert some["user"].tolist()[1] == NULL


def test_a_hash_does_not_depend_on_the_numbers_of_texts() -> None:
    one, other = from_arrow(table(pa.string())), from_arrow(table(pa.string()).take([4, 3, 2, 1, 0]))
    assert hashed(one, ["user", "partition"]).tolist() == hashed(other, ["user", "partition"]).tolist()[::-1]
    assert len(set(hashed(one, ["user", "partition"]).tolist())) == len(USERS)
    assert hashed(one, ["user"])[0] == hashed(one, ["user"])[3]
    assert (hashed(one, ["user", "partition"]) != hashed(one, ["partition", "user"])).all()


def test_texts_may_be_no_utf_8() -> None:
    texts = pa.array([b"caf\xe9", b"caf\xe8"]).view(pa.string())
    rows = from_arrow(pa.table({"user": texts}))
    assert len(set(hashed(rows, ["user"]).tolist())) == 2


def test_a_constant_takes_the_memory_of_one_value() -> None:
    column = narrow(np.full(9, -3))
    assert column.tolist() == [-3] * 9
    assert column.dtype == np.int8
    assert is_constant(column)
    assert is_constant(narrow(np.full(9, 1 << 40)))
    for rows in (np.array([1, 8]), slice(3, 5)):
        assert picked(column, rows).tolist() == [-3] * 2
        assert is_constant(picked(column, rows))
    assert narrow(np.array([1, 2])).dtype == np.int8
    assert narrow(np.array([1, 200])).dtype == np.int16
    assert narrow(np.array([1, 1 << 40])).dtype == np.int64
    assert len(narrow(np.array([], np.int64))) == 0


@pytest.mark.parametrize("mask", ["00000", "11111", "01100", "10010"])
def test_a_mask_selects_rows(mask: str) -> None:
    rows = Rows({"user": np.arange(5), "v": constant(1, 5)}, {})
    found = rows.where(np.array([each == "1" for each in mask]))
    assert found["user"].tolist() == [place for place, each in enumerate(mask) if each == "1"]
    assert found["v"].tolist() == [1] * mask.count("1")
    copied = found.copy()
    assert copied["user"].tolist() == found["user"].tolist()
    assert not np.shares_memory(copied.numbers["user"], rows.numbers["user"])


@pytest.mark.parametrize("other", [["b", "a"], ["a", "ü", None, "b"], [None, "c"], ["c"]])
def test_rows_together_share_texts(other: list[str | None]) -> None:
    parts = []
    for users in (["b", "a", None], other, ["b"]):
        rows = from_arrow(pa.table({"user": users, "v": [1] * len(users)}))
        parts.append(Rows({name: narrow(column) for name, column in rows.numbers.items()}, rows.texts))
    found = together(parts)
    (users,) = found.values(["user"], np.arange(len(found)))
    assert users.to_pylist() == ["b", "a", None, *other, "b"]
    assert len(set(found.texts["user"].to_pylist())) == len(found.texts["user"])
    assert is_constant(found.numbers["v"])
    assert together(parts[:1]) is parts[0]
