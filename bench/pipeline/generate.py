"""Generates usage events like those of a shared cluster: few large tenants, many small ones, and busy days.

    python -m bench.pipeline.generate --events 1000000 --hours 24 --out FOLDER [--format json|parquet]

The sizes of tenants follow Zipf's law, the hours a wave with its peak in the afternoon; weekends are quiet,
and each interval has noise. The largest tenants exceed a quota at their peak. One event of five has no topic,
as the events of requests without records, and one of a hundred is delivered twice. The same arguments give
the same events. Memory does not depend on the number of events.
"""

import argparse
import math
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.schema import EVENT, names
from pipeline.spark.session import make_session

START: Final = datetime(2026, 3, 2, tzinfo=UTC)
"""A Monday."""
INTERVAL_MS: Final = 10_000
BROKERS: Final = 3
LARGEST_RATE: Final = 12e6
"""Mean bytes/s of the largest tenant on each broker of each proxy."""
QUOTA: Final = 16e6
"""The quota in bytes/s there; bytes above it are throttled."""
PRODUCED: Final = 0.45
"""The part of the used partitions that is written."""
PROXIES: Final = 2
SESSION_MS: Final = 900_000
"""How long a client uses a partition."""
EVENTS_PER_TENANT: Final = 1000
"""The default number of tenants is that of the events, divided by this."""
WITHOUT_TOPIC: Final = 5
"""One in this many events has no topic."""
DELIVERED_TWICE: Final = 0.01
"""The part of the events that have a duplicate."""
PER_TASK: Final = 2_000_000
"""Events of a task of Spark, to bound its memory."""
_START: Final = "interval_start_ms"


def events(
    spark: SparkSession, count: int, hours: float, tenants: int | None = None, interval_ms: int = INTERVAL_MS
) -> DataFrame:
    """Return about so many events of schema.EVENT, duplicates included.

    By default more events mean more tenants: a larger cluster, not more traffic on the same one.
    """
    if tenants is None:
        tenants = max(count // EVENTS_PER_TENANT, 20)
    intervals = max(1, round(hours * 3_600_000 / interval_ms))
    slots = max(1, round(count / (1 + DELIVERED_TWICE)) // intervals)
    ids = spark.range(0, intervals * slots, 1, max(2, count // PER_TASK))
    slot, interval = F.col("id") % slots, F.floor(F.col("id") / slots)
    # A slot is one client's use of a partition through one API, or its requests without a topic.
    timed = ids.select(
        slot.alias("slot"), (F.lit(round(START.timestamp() * 1000)) + interval * interval_ms).alias(_START)
    ).withColumn("session", F.floor(F.col(_START) / SESSION_MS))
    base = timed.select(
        "slot",
        _START,
        _rank(slots, tenants).alias("rank"),
        (F.col("slot") % WITHOUT_TOPIC == 0).alias("topicless"),
        (_uniform(F.col("slot"), 2) < PRODUCED).alias("produces"),
    )
    noise = _uniform(F.struct("rank", _START), 3)
    wanted = F.lit(LARGEST_RATE) / F.col("rank") * _wave() * (0.6 + 0.8 * noise)
    shaped = base.withColumn("wanted", F.when(F.col("topicless"), 0.0).otherwise(wanted * interval_ms / 1000))
    share = F.least("wanted", F.lit(QUOTA * interval_ms / 1000)) / _partitions(slots, tenants)
    capped = shaped.withColumn("bytes", share.cast("bigint"))
    columns = _columns(interval_ms, tenants)
    once = capped.select(*[column.alias(name) for name, column in columns.items()]).select(*names(EVENT))
    again = once.where(_uniform(F.struct("proxy", "partition", "client_id", _START), 4) < DELIVERED_TWICE)
    return once.unionAll(again)


def _rank(slots: int, tenants: int) -> Column:
    """The rank of the slot's tenant by size, from 1. The exponential of a uniform number is a rank by Zipf's
    law. Requests without a topic come from all tenants alike; two slots never stand for the same events.
    """
    zipf = F.floor(F.exp(_uniform(F.struct("slot", "session"), 1) * math.log(tenants)))
    topicless = (F.col("slot") / WITHOUT_TOPIC).cast("bigint") + F.col("session") * (
        slots // WITHOUT_TOPIC + 1
    )
    return F.when(F.col("slot") % WITHOUT_TOPIC == 0, topicless % tenants + 1).otherwise(zipf)


def _partitions(slots: int, tenants: int) -> Column:
    """The number of partitions of a broker and proxy that a tenant uses, at least one."""
    of_rank = F.log1p(1 / F.col("rank")) / math.log(tenants)
    way = F.when(F.col("produces"), PRODUCED).otherwise(1 - PRODUCED)
    return F.greatest(of_rank * way * slots / (BROKERS * PROXIES), F.lit(1.0))


def _columns(interval_ms: int, tenants: int) -> dict[str, Column]:
    """The fields of the event of a slot's interval."""
    over = F.greatest(F.col("wanted") / (QUOTA * interval_ms / 1000) - 1, F.lit(0.0))
    requests = F.greatest(F.floor(F.col("bytes") / 65_536), F.lit(1)).cast("bigint")
    waited = F.when(over > 0, requests).otherwise(0).cast("bigint")
    produces, topicless = F.col("produces"), F.col("topicless")
    proxy = (F.col("slot") % PROXIES + 1).cast("string")
    return {
        "v": F.lit(1),
        "cluster": F.lit("main"),
        "proxy": F.concat(F.lit("kafka-quota-proxy-"), proxy, F.lit("-5f0c83a"), proxy),
        "broker": (F.col("slot") % BROKERS + 1).cast("int"),
        "listener": F.lit("clients"),
        _START: F.col(_START),
        "interval_ms": F.lit(interval_ms).cast("bigint"),
        "user": F.concat(F.lit("team-"), F.lpad((F.col("rank") % (tenants // 2)).cast("string"), 4, "0")),
        "client_id": F.concat(F.lit("service-"), F.col("rank").cast("string")),
        "api": F.when(topicless, F.lit("Metadata")).otherwise(
            F.when(produces, F.lit("Produce")).otherwise(F.lit("Fetch"))
        ),
        "topic": F.when(
            ~topicless, F.concat(F.lit("topic-"), (F.col("rank") % (tenants // 4)).cast("string"))
        ),
        "partition": F.when(~topicless, F.col("slot").cast("int")),
        "requests": requests,
        "bytes_in": F.when(produces, F.col("bytes")).otherwise(requests * 90),
        "bytes_out": F.when(produces, requests * 60).otherwise(F.col("bytes")),
        "throttled_requests": waited,
        "throttle_ms": F.least(over * interval_ms, F.lit(interval_ms * 3.0)).cast("bigint"),
        "rejected_requests": F.lit(0).cast("bigint"),
        "rejected_bytes": F.lit(0).cast("bigint"),
        "quota": F.when(
            waited > 0,
            F.when(produces, F.lit("producer_byte_rate")).otherwise(F.lit("consumer_byte_rate")),
        ),
    }


def _uniform(of: Column, salt: int) -> Column:
    """Return a number from 0, inclusive, to 1, exclusive: a hash of `of`, which `salt` varies."""
    return F.pmod(F.xxhash64(of, F.lit(salt)), F.lit(1 << 30)) / F.lit(float(1 << 30))


def _wave() -> Column:
    """The load relative to the mean: low at night, high at 15:00, a third at weekends."""
    hours = (F.col(_START) / 3_600_000.0) % 24
    day = 1 + 0.75 * F.cos((hours - 15) / 24 * 2 * math.pi)
    weekday = F.dayofweek(F.timestamp_millis(_START))
    return day * F.when(weekday.isin(1, 7), 0.33).otherwise(1.0)


def main() -> None:
    """Write a folder of events."""
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline.generate")
    parser.add_argument(
        "--events", type=int, default=1_000_000, help="about this many events (default: %(default)s)"
    )
    parser.add_argument(
        "--hours", type=float, default=24, help="hours that they cover (default: %(default)s)"
    )
    parser.add_argument(
        "--tenants", type=int, help="number of tenants; default: one per 1000 events, at least 20"
    )
    parser.add_argument(
        "--interval",
        type=int,
        default=INTERVAL_MS,
        metavar="MS",
        help="length of an interval in ms (default: %(default)s)",
    )
    parser.add_argument("--out", required=True, help="folder to write, which is replaced")
    parser.add_argument(
        "--format", choices=("json", "parquet"), default="json", help="format (default: %(default)s)"
    )
    options = parser.parse_args()
    spark = make_session()
    table = events(spark, options.events, options.hours, options.tenants, options.interval)
    table.write.mode("overwrite").option("ignoreNullFields", "false").format(options.format).save(options.out)
    spark.stop()


if __name__ == "__main__":
    main()
