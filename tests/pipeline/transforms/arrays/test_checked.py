"""Columns that are checked one by one: all rows are events, or none is taken."""

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from pipeline.schema import EVENT
from pipeline.transforms.arrays.checked import checked
from pipeline.transforms.arrays.rows import Rows, from_arrow, is_constant
from pipeline.transforms.arrays.valid import are_events
from pipeline.transforms.events import latest_ms
from tests.pipeline.transforms.arrays.test_valid import odd
from tests.support.messages.event_tables import as_table, random_events
from tests.support.messages.usage_events import make_event


def rows_of(table: Any) -> Rows | None:
    return checked(zip(table.column_names, table.columns, strict=True), latest_ms())


def values(rows: Rows) -> list[dict[str, Any]]:
    columns = rows.values(EVENT.names, np.arange(len(rows)))
    return list(pa.table(dict(zip(EVENT.names, columns, strict=True))).to_pylist())


def test_the_rules_are_those_of_rows() -> None:
    found = set()
    for event in odd():
        table = as_table([make_event(), event])
        is_event = bool(are_events(from_arrow(table), latest_ms()).all())
        rows = rows_of(table)
        assert (rows is not None) == is_event
        if rows is not None:
            assert values(rows) == [make_event(), event]
        found.add(is_event)
    assert found == {True, False}


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_the_values_are_those_of_the_table(kind: Any) -> None:
    events = random_events(Random(str(kind)), 200)
    table = as_table(events)
    schema = [(field.name, kind if field.type == pa.string() else field.type) for field in table.schema]
    rows = rows_of(pa.concat_tables([table[:50], table[50:]]).cast(pa.schema(schema)))
    assert rows is not None
    assert values(rows) == events
    assert rows.numbers["user"].dtype == np.int8
    assert is_constant(rows.numbers["v"])
    assert not is_constant(rows.numbers["bytes_in"])


def test_there_may_be_no_rows() -> None:
    rows = rows_of(as_table([make_event()])[:0])
    assert rows is not None
    assert len(rows) == 0
