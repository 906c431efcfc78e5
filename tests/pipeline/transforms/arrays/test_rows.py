"""Rows: texts as numbers, whatever the tables that they come from, and hashes that are always the same."""

from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from pipeline.transforms.arrays.rows import MISSING, NULL, from_arrow, hashed

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
