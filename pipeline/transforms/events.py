"""Separates events from invalid rows, with the reason."""

import secrets
import time
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import FractionalType, StringType, StructField, StructType

from pipeline.schema import COUNTS, EVENT, PERIOD, VERSION, names
from pipeline.transforms.duplicates import PLACE
from pipeline.window import Window

_CORRUPT = "_corrupt"
_NO_EVENT: Final = "is no JSON object of an event"
LARGEST_COUNT: Final = 1 << 53
"""JSON numbers are exact up to here, and sums of a thousand of them fit into 64 bits."""
LONGEST_INTERVAL_MS: Final = 86_400_000
"""A day; the proxy's usage.interval_seconds is at most an hour."""
EARLIEST_START_MS: Final = 1_420_070_400_000
"""2015-01-01T00:00:00Z: an earlier time is of a clock that was not set."""
_AHEAD_MS: Final = 86_400_000
"""How far a proxy's clock may be ahead of this machine's."""


LONGEST_LINE: Final = 1 << 20
"""Bytes of a line or record. By default, brokers reject larger records."""
_SHOWN: Final = 1000
"""The characters of a longer line that are kept."""
_TEXTS: Final = tuple(field for field in EVENT.fields if isinstance(field.dataType, StringType))
_AS_READ: Final = "partition_as_read"
_SPACE: Final = r"[ \t\r\n]*+"
_END: Final = secrets.token_hex(16)
"""A text that the reader puts behind a line. Nobody who sends lines knows it, so no line has it."""


def checked_lines(lines: DataFrame) -> DataFrame:
    """Parse `raw` into the event columns, beside the columns of `lines` and `reason`, which is null for an
    event. The `raw` of a line over LONGEST_LINE becomes its beginning and its length.

    Each step is a column of its own, so that Spark computes it once for all later steps.
    """
    shape = StructType([*_all_nullable(), StructField(_CORRUPT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "allowSingleQuotes": "false"}
    is_long = F.octet_length("raw") > LONGEST_LINE
    bounded = lines.withColumns(
        {"raw": F.when(is_long, _beginning()).otherwise(F.col("raw")), "is_long": is_long}
    )
    parsed = bounded.select("*", F.from_json("raw", shape, options).alias("event"))
    clear = parsed.select("*", (_is_as_written() | _is_in_order()).alias("is_clear"))
    strict = clear.select("*", F.when(~F.col("is_clear"), _parsed_strictly()).alias("strict"))
    is_whole = F.col(f"event.{_CORRUPT}").isNull()
    return strict.select(
        *[F.col(f"event.{name}").alias(name) for name in names(EVENT)],
        *lines.columns,
        _reason(
            F.col("is_clear") & is_whole & _is_possible("event."),
            F.when(F.col("is_long"), F.lit(f"is longer than {LONGEST_LINE:,} bytes")),
            _no_object(),
            *_missing("event."),
            F.when(~F.col("is_clear"), _not_strict()),
            F.when(~is_whole, F.lit("topic, partition or quota is of a wrong type")),
            *_impossible("event."),
        ).alias("reason"),
    )


def checked_rows(rows: DataFrame) -> DataFrame:
    """Check a table with the event columns and PLACE in the same way; `raw` is the row as JSON."""
    cast = rows.select(
        *[_cast(rows, field).alias(field.name) for field in EVENT.fields],
        PLACE,
        F.col("partition").alias(_AS_READ),
    )
    written = [F.col(_AS_READ if name == "partition" else name).alias(name) for name in names(EVENT)]
    # A partition may be null, but not because it has no int. Some programs write NaN for null.
    is_lost = F.col("partition").isNull() & F.col(_AS_READ).isNotNull()
    is_lost &= F.col(_AS_READ).cast("string") != "NaN"
    return cast.select(
        *names(EVENT),
        PLACE,
        F.to_json(F.struct(*written)).alias("raw"),
        _reason(
            _is_possible("") & ~is_lost,
            *_missing(""),
            F.when(is_lost, F.lit("partition is no int")),
            *_impossible(""),
        ).alias("reason"),
    )


def _cast(rows: DataFrame, field: StructField) -> Column:
    """The column with the field's type; null where it has no such value, such as 1.5 for a bigint."""
    read = F.col(field.name)
    cast = read.try_cast(field.dataType)
    is_fractional = isinstance(rows.schema[field.name].dataType, FractionalType)
    return F.when(read % 1 == 0, cast) if is_fractional and field not in _TEXTS else cast


def _reason(fine: Column, *problems: Column) -> Column:
    """The first of the problems. Rows that are fine, which is cheap to tell, skip the many conditions."""
    return F.when(~F.coalesce(fine, F.lit(False)), F.coalesce(*problems))


def _all_nullable() -> list[StructField]:
    return [StructField(field.name, field.dataType) for field in EVENT.fields]


def _no_object() -> Column:
    fields = [F.col(f"event.{name}").isNull() for name in names(EVENT)]
    return F.when(reduce(Column.__and__, fields), F.lit(_NO_EVENT))


def _beginning() -> Column:
    """The beginning of a long line, and its length."""
    size = F.octet_length("raw").cast("string")
    return F.concat(F.left("raw", F.lit(_SHOWN)), F.lit("... ("), size, F.lit(" bytes)"))


def _parsed_strictly() -> Column:
    """An array of the line's object and _END; null if the line is no JSON, or has a key twice."""
    return F.try_parse_json(F.concat(F.lit("["), F.col("raw"), F.lit(f',"{_END}"]')))


def _not_strict() -> Column:
    """The reason against what from_json accepts: text behind the object, a key that occurs twice, and values
    that are not texts in text fields.
    """
    line = F.col("strict")
    is_one = F.try_variant_get(line, "$[1]", "string").eqNullSafe(F.lit(_END))
    is_twice = line.isNull() & F.try_parse_json("raw").isNull()
    problems = [F.when(is_twice, F.lit("has a key twice")), F.when(~is_one, F.lit(_NO_EVENT))]
    for field in _TEXTS:
        kind = F.schema_of_variant(F.try_variant_get(line, f"$[0].{field.name}", "variant"))
        allowed = ["STRING", "VOID"] if field.nullable else ["STRING"]
        wrong = F.lit(f"{field.name} is missing or no {field.dataType.simpleString()}")
        problems.append(F.when(~kind.isin(allowed), wrong))
    return F.coalesce(*problems)


def _is_as_written() -> Column:
    """Whether the line is exactly what the proxy writes for the event that was parsed from it.

    Such a line has no escape, its text fields are texts, and nothing is before or behind the object. To
    compare takes much less time than regular expressions do.
    """
    return F.coalesce(F.col("raw") == as_written("event."), F.lit(False))


def as_written(prefix: str) -> Column:
    """The line that the proxy writes for an event whose texts need no escape; null if a field is missing."""
    parts: list[Column] = []
    for field in EVENT.fields:
        value = F.col(prefix + field.name).cast("string")
        if field in _TEXTS:
            value = F.concat(F.lit('"'), value, F.lit('"'))
        parts.append(F.lit(f'{"," if parts else "{"}"{field.name}":'))
        parts.append(F.coalesce(value, F.lit("null")) if field.nullable else value)
    return F.concat(*parts, F.lit("}"))


def _is_in_order() -> Column:
    """Whether the line has the fields of an event in their order, each once, with values of their types and
    without escapes, and nothing else but spaces.

    A regular expression takes less time than to parse the line a second time.
    """
    fields = [f'"{field.name}"{_SPACE}:{_SPACE}{_value(field)}' for field in EVENT.fields]
    inside = f"{_SPACE},{_SPACE}".join(fields)
    return F.col("raw").rlike(rf"^{_SPACE}\{{{_SPACE}{inside}{_SPACE}\}}{_SPACE}\z")


def _value(field: StructField) -> str:
    """A regular expression of the values of a field that need no escape."""
    value = r'"[^"\\]*+"' if field in _TEXTS else r"-?+\d++"
    return f"(?:{value}|null)" if field.nullable else value


def _missing(prefix: str) -> list[Column]:
    """Return the reason for each field that must not be null; it is null if the field has a value."""
    return [
        F.when(
            F.col(prefix + field.name).isNull(),
            F.lit(f"{field.name} is missing or no {field.dataType.simpleString()}"),
        )
        for field in EVENT.fields
        if not field.nullable
    ]


def _is_possible(prefix: str) -> Column:
    """Whether nothing is missing and nothing is impossible; false or null also for counts of 2^53."""
    texts = [F.col(prefix + field.name).isNotNull() for field in _TEXTS if not field.nullable]
    start, length = F.col(f"{prefix}interval_start_ms"), F.col(f"{prefix}interval_ms")
    # A negative number makes the bits of all together negative, a large one makes them large.
    together = reduce(Column.bitwiseOR, [F.col(prefix + name) for name in COUNTS])
    return (
        (F.col(f"{prefix}v") == VERSION)
        & F.col(f"{prefix}broker").isNotNull()
        & reduce(Column.__and__, texts)
        & (F.col(f"{prefix}api") != "")
        & length.between(1, LONGEST_INTERVAL_MS)
        & start.between(EARLIEST_START_MS, latest_ms())
        & (F.coalesce(F.col(f"{prefix}partition"), F.lit(0)) >= 0)
        & together.between(0, LARGEST_COUNT - 1)
    )


def latest_ms() -> int:
    """Return the latest time at which an interval may begin."""
    return round(time.time() * 1000) + _AHEAD_MS


def _impossible(prefix: str) -> list[Column]:
    """Return the reasons why no proxy sends such values; each is null if it does not apply."""
    version = F.col(f"{prefix}v")
    newer = F.concat(
        F.lit("v is "), version.cast("string"), F.lit(f"; this pipeline reads version {VERSION}")
    )
    start = F.col(f"{prefix}interval_start_ms")
    length = F.col(f"{prefix}interval_ms")
    return [
        F.when(version != VERSION, newer),
        F.when(length <= 0, F.lit("interval_ms is not above 0")),
        F.when(length > LONGEST_INTERVAL_MS, F.lit("interval_ms is more than a day")),
        F.when(start < 0, F.lit("interval_start_ms is negative")),
        F.when(start < EARLIEST_START_MS, F.lit("interval_start_ms is before 2015")),
        F.when(start > latest_ms(), F.lit("interval_start_ms is more than a day in the future")),
        F.when(F.col(f"{prefix}partition") < 0, F.lit("partition is negative")),
        F.when(F.col(f"{prefix}api") == "", F.lit("api is empty")),
        *[F.when(F.col(prefix + name) < 0, F.lit(f"{name} is negative")) for name in COUNTS],
        *[F.when(F.col(prefix + name) > LARGEST_COUNT, F.lit(f"{name} is over 2^53")) for name in COUNTS],
    ]


def good(checked: DataFrame) -> DataFrame:
    """Return the rows that are events, with `raw` and PLACE."""
    return checked.where(F.col("reason").isNull()).drop("reason")


def bad(checked: DataFrame) -> DataFrame:
    """Return the rows that are not events, with the reason. In `raw`, bytes that are not UTF-8 are U+FFFD:
    other programs cannot read a table with such bytes.
    """
    found = checked.where(F.col("reason").isNotNull())
    return found.select(F.make_valid_utf8("raw").alias("raw"), "reason")


def is_within(window: Window) -> Column:
    """Whether the interval begins in the window."""
    start, found = F.col("interval_start_ms"), F.lit(True)
    if window.start_ms is not None:
        found &= start >= window.start_ms
    if window.end_ms is not None:
        found &= start < window.end_ms
    return found


def within(events: DataFrame, window: Window) -> DataFrame:
    """Return the events whose interval begins in the window."""
    return events.where(is_within(window))


def span(window: Window) -> tuple[Column, Column]:
    """The start of the first interval and the end of the last one, in ms, over the events of a checked table
    that are in the window; null if there are none.
    """
    counts = F.col("reason").isNull() & is_within(window)
    start = F.when(counts, F.col("interval_start_ms"))
    return F.min(start), F.max(start + F.col("interval_ms"))


def with_period(table: DataFrame, period: Window) -> DataFrame:
    """Add the columns of PERIOD with the ends of this window; an end that it lacks is null."""
    ends = zip(names(PERIOD), (period.start_ms, period.end_ms), strict=True)
    return table.select("*", *[F.timestamp_millis(F.lit(ms).cast("bigint")).alias(name) for name, ms in ends])


def with_date(events: DataFrame) -> DataFrame:
    """Add the day (UTC) in which the interval begins."""
    day = F.timestamp_millis("interval_start_ms").cast("date")
    return events.select(*names(EVENT), day.alias("date"))
