"""The columns of every table: the only place that defines names, types and units.

Version 1 of the usage event. A new field may be added without a new version; readers ignore fields that they
do not know. The tables in docs/usage-events.md and docs/pipeline.md are generated from here.
"""

from typing import Final

from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

VERSION: Final = 1
_TEXT: Final = StringType()
_INT: Final = IntegerType()
_LONG: Final = LongType()
_REAL: Final = DoubleType()
_TIME: Final = TimestampType()
MONEY: Final = DecimalType(20, 2)


def _column(name: str, kind: DataType, unit: str, text: str, null: bool = False) -> StructField:
    return StructField(name, kind, null, {"unit": unit, "comment": text})


_HOUR: Final = _column("hour", _TIME, "UTC", "start of the hour (of the day, with --by day)")
_CLUSTER: Final = _column("cluster", _TEXT, "", "the cluster's name, as configured")
_BROKER: Final = _column("broker", _INT, "", "the broker's node id")
_USER: Final = _column("user", _TEXT, "", "the principal's name; ANONYMOUS without authentication")
_CLIENT_ID: Final = _column("client_id", _TEXT, "", "the client id; empty if the client sends none")
_TOPIC: Final = _column("topic", _TEXT, "", "the topic; null for traffic without a topic", null=True)
_PARTITION: Final = _column(
    "partition", _INT, "", "the partition; null for traffic without a partition", null=True
)
_QUOTA: Final = _column(
    "quota",
    _TEXT,
    "",
    "the quota with the longest throttle time, or else one that rejected; null if none",
    null=True,
)
_CURRENCY: Final = _column("currency", _TEXT, "", "the currency of the price file")
_NAME: Final = _column("name", _TEXT, "", "the tenant's name in the file of --tenants", null=True)
_COST_CENTER: Final = _column(
    "cost_center", _TEXT, "", "the tenant's cost center in the file of --tenants", null=True
)
_BYTES_IN: Final = _column("bytes_in", _LONG, "bytes", "bytes from clients to the broker")
_BYTES_OUT: Final = _column("bytes_out", _LONG, "bytes", "bytes from the broker to clients")
_REQUESTS: Final = _column("requests", _LONG, "requests", "requests, with or without a response")
_BOUND: Final = (
    _column("throttled_requests", _LONG, "requests", "requests that a quota throttled"),
    _column("throttle_ms", _LONG, "ms", "sum of the throttle times"),
    _column("rejected_requests", _LONG, "requests", "requests that a quota rejected, whole or in part"),
    _column("rejected_bytes", _LONG, "bytes", "bytes of the records that a quota rejected"),
)

EVENT: Final = StructType(
    [
        _column("v", _INT, "", "version of the event format: 1"),
        _CLUSTER,
        _column("proxy", _TEXT, "", "identifies one run of one proxy process"),
        _BROKER,
        _column("listener", _TEXT, "", "the proxy's listener"),
        _column("interval_start_ms", _LONG, "ms since the epoch", "start of the interval"),
        _column("interval_ms", _LONG, "ms", "length of the interval"),
        _USER,
        _CLIENT_ID,
        _column("api", _TEXT, "", "Kafka's name of the API, such as Produce"),
        _TOPIC,
        _PARTITION,
        _REQUESTS,
        _BYTES_IN,
        _BYTES_OUT,
        *_BOUND,
        _QUOTA,
    ]
)
"""One event per (interval, broker, user, client id, api, topic, partition) that had traffic."""

IDENTITY: Final = (
    "cluster",
    "proxy",
    "broker",
    "listener",
    "interval_start_ms",
    "user",
    "client_id",
    "api",
    "topic",
    "partition",
)
"""Two events with all of these equal are the same event, delivered twice."""

COUNTS: Final = (
    "requests",
    "bytes_in",
    "bytes_out",
    "throttled_requests",
    "throttle_ms",
    "rejected_requests",
    "rejected_bytes",
)
"""The fields of an event that are sums over its requests."""

STORED_EVENT: Final = StructType(
    [*EVENT.fields, _column("date", DateType(), "UTC", "the day in which the interval begins")]
)

QUARANTINE: Final = StructType(
    [
        _column("raw", _TEXT, "", "the text or row as it was read", null=True),
        _column("reason", _TEXT, "", "why it is not an event"),
    ]
)

USAGE: Final = StructType(
    [
        _HOUR,
        _CLUSTER,
        _BROKER,
        _USER,
        _CLIENT_ID,
        _TOPIC,
        _PARTITION,
        _REQUESTS,
        _BYTES_IN,
        _BYTES_OUT,
        *_BOUND,
        _column("max_bytes_in_rate", _REAL, "bytes/s", "highest rate of any interval"),
        _column("max_bytes_out_rate", _REAL, "bytes/s", "the same for bytes_out"),
        _column(
            "p95_bytes_in_rate",
            _REAL,
            "bytes/s",
            "95th percentile over the intervals with traffic in either direction",
        ),
        _column("p95_bytes_out_rate", _REAL, "bytes/s", "the same for bytes_out"),
        _column(
            "p99_bytes_in_rate",
            _REAL,
            "bytes/s",
            "99th percentile over the intervals with traffic in either direction",
        ),
        _column("p99_bytes_out_rate", _REAL, "bytes/s", "the same for bytes_out"),
        _column("share_in", _REAL, "0 to 1", "bytes_in divided by the cluster's bytes_in in that hour"),
        _column("share_out", _REAL, "0 to 1", "bytes_out divided by the cluster's bytes_out in that hour"),
    ]
)

THROTTLE: Final = StructType([_HOUR, _CLUSTER, _USER, _CLIENT_ID, _QUOTA, *_BOUND])

CHARGEBACK: Final = StructType(
    [
        _CLUSTER,
        _USER,
        _CLIENT_ID,
        _BYTES_IN,
        _BYTES_OUT,
        _REQUESTS,
        _column(
            "partition_hours",
            _LONG,
            "hours",
            "number of partitions that the tenant used in each hour, summed",
        ),
        _CURRENCY,
        _column("amount", MONEY, "the currency", "the tenant's cost; a cluster's rows add up to its bill"),
    ]
)

INVOICES: Final = StructType(
    [
        _CLUSTER,
        _USER,
        _CLIENT_ID,
        _column("line", _INT, "", "number of the line, in the order of the price file's keys and tiers"),
        _column("item", _TEXT, "", "the price file's key, such as per_gib_in"),
        _column("quantity", DecimalType(31, 18), "", "what the tenant used, within the price's tier"),
        _column("unit", _TEXT, "", "unit of the quantity: GiB, million requests or partition-hours"),
        _column("price", DecimalType(14, 6), "the currency", "price of a unit"),
        _column("amount", MONEY, "the currency", "the line's amount; a tenant's lines add up to its amount"),
        _CURRENCY,
        _NAME,
        _COST_CENTER,
    ]
)

INVOICE_FILES: Final = StructType(
    [
        _CLUSTER,
        _USER,
        _CLIENT_ID,
        _NAME,
        _COST_CENTER,
        _column("amount", MONEY, "the currency", "the amount of the invoice"),
        _CURRENCY,
        _column("file", _TEXT, "", "name of the file with the invoice, the same for each period"),
    ]
)
"""The CSV file that lists the files of invoices."""

REPLAY: Final = StructType(
    [
        _CLUSTER,
        _USER,
        _CLIENT_ID,
        _QUOTA,
        _column("before_throttle_ms", _LONG, "ms", "throttle time in the events"),
        _column(
            "after_throttle_ms",
            _LONG,
            "ms",
            "throttle time with the replayed quotas; null if not replayed",
            null=True,
        ),
        _column("before_rejected_bytes", _LONG, "bytes", "rejected bytes in the events"),
        _column(
            "after_rejected_bytes",
            _LONG,
            "bytes",
            "rejected bytes with the replayed quotas; null if not replayed",
            null=True,
        ),
        _column(
            "after_delayed_bytes",
            _LONG,
            "bytes",
            "bytes that the tenant would send later than in the events; null if not replayed",
            null=True,
        ),
        _column(
            "after_late_ms",
            _LONG,
            "ms",
            "longest delay of the tenant's traffic; null if not replayed",
            null=True,
        ),
    ]
)

HEADROOM: Final = StructType(
    [
        _CLUSTER,
        _column("user", _TEXT, "", "the bucket's user; empty if all users share the bucket"),
        _column("client_id", _TEXT, "", "the bucket's client id; empty if all client ids share the bucket"),
        _column("quota", _TEXT, "", "the byte rate: producer_byte_rate or consumer_byte_rate"),
        _column("limit", _REAL, "bytes/s", "limit of the bucket"),
        _column("scope", _TEXT, "", "scope of the limit: each `broker` of each proxy, or the `cluster`"),
        _column("p99_rate", _REAL, "bytes/s", "99th percentile, where the scope is busiest"),
        _column("max_rate", _REAL, "bytes/s", "rate in the busiest interval, where the scope is busiest"),
        _column("used", _REAL, "0 and above", "p99_rate / limit"),
    ]
)


SKIPPED: Final = StructType(
    [
        _column("user", _TEXT, "", "the user; empty with --per client-id"),
        _column("client_id", _TEXT, "", "the client id; empty if the client sends none, or with --per user"),
        _column("quota", _TEXT, "", "the byte rate: producer_byte_rate or consumer_byte_rate"),
        _column(
            "samples", _LONG, "intervals", "intervals with traffic, at the proxy and broker with the most"
        ),
        _column("p99_rate", _REAL, "bytes/s", "99th percentile at the busiest proxy and broker"),
        _column("reason", _TEXT, "", "why the tenant gets no quota"),
    ]
)

PERIOD: Final = StructType(
    [
        _column(
            "from", _TIME, "UTC", "start of the period: --from, or start of the first interval", null=True
        ),
        _column(
            "to", _TIME, "UTC", "end of the period, exclusive: --to, or end of the last interval", null=True
        ),
    ]
)
"""The last columns of every table that is computed from events: the period of the run that wrote the row."""


def of_period(table: StructType) -> StructType:
    """The table's columns with those of PERIOD, as they are written."""
    return StructType([*table.fields, *PERIOD.fields])


def names(table: StructType) -> list[str]:
    """The table's columns, in order."""
    return [field.name for field in table.fields]


def markdown(table: StructType) -> str:
    """The table's columns as a table of the documentation."""
    rows = ["| column | type | unit | meaning |", "|---|---|---|---|"]
    for field in table.fields:
        kind = field.dataType.simpleString() + (", may be null" if field.nullable else "")
        unit, comment = field.metadata["unit"], field.metadata["comment"]
        rows.append(f"| `{field.name}` | {kind} | {unit} | {comment} |")
    return "\n".join(rows) + "\n"
