"""The same tables with DuckDB: `python -m bench.pipeline.in_duckdb JOB EVENTS OUT PRICES SCRATCH [checked]`.

Prints a line of JSON with the process's cost. The statements share no code with the pipeline, so their
results also check its tables. With `checked`, which requires Parquet, DuckDB does what the job does: it
checks each event, counts events and invalid ones, finds the period, takes the first of several events with
one identity, and writes what does not count to a table of its own. Without, it takes any of these events.
"""

import sys
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import duckdb
import yaml

from bench.pipeline.cost import own_cost

JOBS: Final = ("usage", "throttle", "chargeback")
IDENTITY: Final = (
    "cluster, proxy, broker, listener, interval_start_ms, user, client_id, api, topic, partition"
)
_COUNTS: Final = (
    "requests, bytes_in, bytes_out, throttled_requests, throttle_ms, rejected_requests, rejected_bytes"
)
_TYPES: Final = {
    "v": "INTEGER",
    **dict.fromkeys(IDENTITY.split(", "), "VARCHAR"),
    **dict.fromkeys(_COUNTS.split(", "), "BIGINT"),
    "interval_start_ms": "BIGINT",
    "interval_ms": "BIGINT",
    "broker": "INTEGER",
    "partition": "INTEGER",
    "quota": "VARCHAR",
}
_HOUR: Final = "interval_start_ms - interval_start_ms % 3600000"
_USAGE: Final = f"""
WITH intervals AS (
    SELECT {_HOUR} AS hour_ms, cluster, broker, "user", client_id, topic, "partition", interval_start_ms,
        {", ".join(f"sum({name}) AS {name}" for name in _COUNTS.split(", "))},
        sum(bytes_in) * 1000.0::DOUBLE / max(interval_ms) AS in_rate,
        sum(bytes_out) * 1000.0::DOUBLE / max(interval_ms) AS out_rate /* contradicted */
    FROM events GROUP BY ALL
), hours AS (
    SELECT make_timestamp(hour_ms * 1000) AS hour, cluster, broker, "user", client_id, topic, "partition",
        {", ".join(f"sum({name})::BIGINT AS {name}" for name in _COUNTS.split(", "))},
        max(in_rate) AS max_bytes_in_rate, max(out_rate) AS max_bytes_out_rate,
        quantile_cont(in_rate, [0.95, 0.99]) AS in_rates, quantile_cont(out_rate, [0.95, 0.99]) AS out_rates
        /* contradicted */
    FROM intervals GROUP BY ALL
)
SELECT * EXCLUDE (in_rates, out_rates),
    in_rates[1] AS p95_bytes_in_rate, out_rates[1] AS p95_bytes_out_rate,
    in_rates[2] AS p99_bytes_in_rate, out_rates[2] AS p99_bytes_out_rate,
    coalesce(bytes_in / nullif(sum(bytes_in) OVER hour_of_cluster, 0), 0) AS share_in,
    coalesce(bytes_out / nullif(sum(bytes_out) OVER hour_of_cluster, 0), 0) AS share_out
FROM hours WINDOW hour_of_cluster AS (PARTITION BY hour, cluster)
"""
_THROTTLE: Final = f"""
SELECT make_timestamp(({_HOUR}) * 1000) AS hour, cluster, "user", client_id, quota,
    sum(throttled_requests)::BIGINT AS throttled_requests, sum(throttle_ms)::BIGINT AS throttle_ms,
    sum(rejected_requests)::BIGINT AS rejected_requests, sum(rejected_bytes)::BIGINT AS rejected_bytes
    /* contradicted */
FROM events GROUP BY ALL
"""
_CONTRADICTED: Final = {
    "/* contradicted */": ", bool_or(contradicted) AS contradicted",
    "/* of a row */": ", contradicted",
}
"""What the statements have instead of these comments if duplicates are compared."""
_BOUND: Final = "throttled_requests > 0 OR throttle_ms > 0 OR rejected_requests > 0 OR rejected_bytes > 0"

_KEY: Final = IDENTITY.replace("user", '"user"').replace("partition", '"partition"')
_VALUES: Final = ("interval_ms", *_COUNTS.split(", "), "quota")
_PLACE: Final = "((hash(filename) >> 34) << 34) + file_row_number"
"""The order of events: by file, and in it by row."""
_TEXTS: Final = ("cluster", "proxy", "listener", '"user"', "client_id", "api")
_CHECKS: Final = " AND ".join(
    [
        "coalesce(v = 1, false)",
        *[f"{name} IS NOT NULL" for name in (*_TEXTS, "broker")],
        "api <> ''",
        "coalesce(interval_ms BETWEEN 1 AND 86400000, false)",
        "coalesce(interval_start_ms BETWEEN 1420070400000 AND epoch_ms(now()) + 86400000, false)",
        'coalesce("partition" >= 0, true)',
        *[f"coalesce({name} BETWEEN 0 AND 9007199254740992, false)" for name in _COUNTS.split(", ")],
    ]
)
_IS_VALID: Final = f"({_CHECKS})"
"""What the pipeline requires of an event in a Parquet table."""


def connect(memory: str, scratch: str) -> Any:
    """Return a connection that keeps what does not fit into the memory in the folder `scratch`."""
    connection = duckdb.connect()
    connection.execute(f"SET memory_limit = '{memory}'; SET temp_directory = '{scratch}'")
    return connection


def statement(job: str, source: str, prices: dict[str, Any]) -> str:
    """The statement that selects the job's table, without the period."""
    events = _events(source, _BOUND if job == "throttle" else "true")
    return _table(job, prices).replace("FROM events", f"FROM ({events})")


def _table(job: str, prices: dict[str, Any]) -> str:
    return {"usage": _USAGE, "throttle": _THROTTLE}.get(job) or _chargeback(prices)


def rows(job: str, source: str, prices: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the job's table."""
    found = duckdb.connect().execute(statement(job, source, prices))
    columns = [each[0] for each in found.description]
    return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]


def _events(source: str, condition: str) -> str:
    """Return a query for each event that meets the condition, once."""
    if next(Path(source).rglob("*.parquet"), None) is not None:
        files = f"read_parquet('{source}/*.parquet')"
    else:
        columns = ", ".join(f"'{name}': '{kind}'" for name, kind in _TYPES.items())
        files = f"read_json('{source}/*.json', format = 'newline_delimited', columns = {{{columns}}})"
    return f"SELECT DISTINCT ON ({_KEY}) * FROM {files} WHERE {condition}"


def _chargeback(prices: dict[str, Any]) -> str:
    """Return the query for the bill. Amounts are exact: integers in units of 10^-12 of the currency."""
    micro = {
        name: round(Decimal(str(price)) * 1_000_000) for name, price in prices.items() if name != "currency"
    }
    exact = (
        f"((bytes_in::HUGEINT * {micro['per_gib_in']} + bytes_out::HUGEINT * {micro['per_gib_out']})"
        f" * 1000000) // {1 << 30} + requests::HUGEINT * {micro['per_million_requests']}"
        f" + partition_hours::HUGEINT * {micro['per_partition_hour']} * 1000000"
    )
    return f"""
WITH hours AS (
    SELECT cluster, "user", client_id, topic, "partition", {_HOUR} AS hour_ms,
        sum(bytes_in) AS bytes_in, sum(bytes_out) AS bytes_out, sum(requests) AS requests
        /* contradicted */
    FROM events GROUP BY ALL
), tenants AS (
    SELECT cluster, "user", client_id, sum(bytes_in)::BIGINT AS bytes_in, sum(bytes_out)::BIGINT AS bytes_out,
        sum(requests)::BIGINT AS requests, count("partition") AS partition_hours
        /* contradicted */
    FROM hours GROUP BY ALL
), cut AS (
    SELECT *, {exact} AS exact, exact // 10000000000 AS cents, exact % 10000000000 AS remainder FROM tenants
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY cluster ORDER BY remainder DESC, "user", client_id) AS place,
        (sum(exact) OVER bill + 5000000000) // 10000000000 - sum(cents) OVER bill AS lacking
    FROM cut WINDOW bill AS (PARTITION BY cluster)
)
SELECT cluster, "user", client_id, bytes_in, bytes_out, requests, partition_hours,
    '{prices["currency"]}' AS currency,
    ((cents + (place <= lacking)::INTEGER)::DECIMAL(20, 0) * 0.01::DECIMAL(3, 2))::DECIMAL(20, 2) AS amount
    /* of a row */
FROM ranked
"""


def checked_table(
    connection: Any, job: str, source: str, out: Path, prices: dict[str, Any]
) -> dict[str, int]:
    """Make the table `result`, and write `quarantine.parquet` if there is something in it. Return the counts
    and the period.
    """
    rows = f"read_parquet('{source}/*.parquet', filename = true, file_row_number = true)"
    condition = f"{_IS_VALID} AND ({_BOUND})" if job == "throttle" else _IS_VALID
    digest = f"hash({', '.join(_VALUES)})"
    # Which of several equal events counts makes no difference, and to find the first one takes longer.
    for chosen in ("first({0})", "min_by({0}, place)"):
        unique = f"""
            SELECT {_KEY}, {", ".join(f"{chosen.format(name)} AS {name}" for name in _VALUES)},
                min(digest) <> max(digest) AS contradicted
            FROM (SELECT *, {_PLACE} AS place, {digest} AS digest FROM {rows} WHERE {condition})
            GROUP BY {_KEY}"""
        table = _table(job, prices).replace("FROM events", f"FROM ({unique})")
        for comment, text in _CONTRADICTED.items():
            table = table.replace(comment, text)
        connection.execute(f"CREATE OR REPLACE TABLE result AS {table}")
        ((contradicted,),) = connection.execute("SELECT count(*) FROM result WHERE contradicted").fetchall()
        if not contradicted:
            break
    connection.execute("ALTER TABLE result DROP COLUMN contradicted")
    (counts,) = connection.execute(f"""
        SELECT count(*), count(*) FILTER (WHERE NOT {_IS_VALID}),
            min(interval_start_ms) FILTER (WHERE {_IS_VALID}),
            max(interval_start_ms + interval_ms) FILTER (WHERE {_IS_VALID})
        FROM {rows}""").fetchall()
    found = dict(zip(("read", "bad", "start", "end"), counts, strict=True))
    if found["bad"] or contradicted:
        connection.execute(f"""
            COPY (
                WITH placed AS (
                    SELECT *, {_PLACE} AS place, {digest} AS digest FROM {rows}
                ), counted AS (
                    SELECT *, first_value(digest) OVER (PARTITION BY {_KEY} ORDER BY place) AS first
                    FROM placed WHERE {condition}
                )
                SELECT * EXCLUDE (place, digest), 'invalid' AS reason FROM placed WHERE NOT {_IS_VALID}
                UNION ALL BY NAME
                SELECT * EXCLUDE (place, digest, first), 'contradicts' AS reason FROM counted
                WHERE digest <> first
            ) TO '{out}/quarantine.parquet' (FORMAT parquet)""")
    return {**found, "contradicted": contradicted}


def main() -> None:
    """Compute the table, write it as Parquet, print what it cost."""
    job, source, out, prices, scratch, *checked = sys.argv[1:]
    Path(out).mkdir(parents=True, exist_ok=True)
    costs = yaml.safe_load(Path(prices).read_text(encoding="utf-8"))
    connection = connect("4GB", scratch)
    if checked:
        checked_table(connection, job, source, Path(out), costs)
        chosen = "FROM result"
    else:
        chosen = statement(job, source, costs)
    connection.execute(f"COPY ({chosen}) TO '{out}/{job}.parquet' (FORMAT parquet)")
    print(own_cost())


if __name__ == "__main__":
    main()
