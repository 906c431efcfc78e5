"""The pipeline's schema of an event equals the proxy's: fields, types, and which may be null."""

from typing import Any

from msgspec import inspect
from pyspark.sql.types import IntegerType, LongType, StringType

from pipeline.schema import COUNTS, EVENT, IDENTITY, VERSION
from proxy.quota.usage import ClientUsage, UsageLedger
from proxy.telemetry.usage import events
from proxy.telemetry.usage.events import UsageEvent

TYPES: dict[type[inspect.Type], tuple[type[Any], ...]] = {
    inspect.StrType: (StringType,),
    inspect.IntType: (IntegerType, LongType),
}


def shape() -> dict[str, tuple[inspect.Type, bool]]:
    """Each field's type, and whether it may be null."""
    kind = inspect.type_info(UsageEvent)
    assert isinstance(kind, inspect.StructType)
    fields = {}
    for field in kind.fields:
        members = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
        (own,) = [member for member in members if not isinstance(member, inspect.NoneType)]
        fields[field.encode_name] = (own, len(members) > 1)
    return fields


def test_fields_are_the_pipelines_columns() -> None:
    assert list(shape()) == EVENT.fieldNames()
    assert events.VERSION == VERSION


def test_types_and_nulls_agree() -> None:
    for name, (own, may_be_null) in shape().items():
        column = EVENT[name]
        assert isinstance(column.dataType, TYPES[type(own)]), name
        assert column.nullable == may_be_null, name


def test_counts_are_what_a_tally_has() -> None:
    """An event has identity, counts, and the fields that describe it."""
    assert set(shape()) - {*IDENTITY, *COUNTS} == {"v", "interval_ms", "quota"}
    client: ClientUsage = UsageLedger().client(1, "u", "c")
    client.count_request(0, 1)
    (used,) = client.take()
    assert all(hasattr(used.tally, name) for name in COUNTS if name != "throttle_ms")
