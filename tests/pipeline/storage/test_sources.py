"""Sources: what --events means."""

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from pipeline.errors import InputError
from pipeline.storage.formats import PARQUET
from pipeline.storage.sources import FILES, KAFKA, LINES, Source, kafka_options, parse_source, shown_files
from tests.support.messages.event_tables import as_table
from tests.support.messages.usage_events import make_event


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("kafka://k:9092/usage", Source(KAFKA, "k:9092", "usage")),
        ("kafka://k:9092,[::1]:9093/usage-1.x_y", Source(KAFKA, "k:9092,[::1]:9093", "usage-1.x_y")),
        ("s3a://bucket/events", Source(FILES, "s3a://bucket/events")),
        ("s3a://bucket/usage.parquet/", Source(FILES, "s3a://bucket/usage.parquet/")),
        ("hdfs://bucket/usage.jsonl", Source(FILES, "hdfs://bucket/usage.jsonl")),
    ],
)
def test_places_that_are_not_local(text: str, source: Source) -> None:
    assert parse_source(text) == source


def test_a_local_folder_is_what_it_has(tmp_path: Path) -> None:
    lines, table = tmp_path / "lines", tmp_path / "table"
    for file in (lines / "a.jsonl", table / "date=2026-01-01/part.parquet"):
        file.parent.mkdir(parents=True)
        file.touch()
    assert parse_source(str(lines)) == Source(LINES, str(lines))
    for url in (f"file://{table}", f"file:{table}"):
        assert parse_source(url) == Source(PARQUET, str(table))
    assert parse_source(str(table), form=LINES) == Source(LINES, str(table))


def test_links_are_followed_and_hidden_folders_are_not(tmp_path: Path) -> None:
    """As by Spark, which would read the bytes of Parquet as lines."""
    disk, events = tmp_path / "disk", tmp_path / "events"
    for file in (disk / "part.parquet", events / "_temporary/part.parquet", events / "a/.b.parquet"):
        file.parent.mkdir(parents=True)
        file.touch()
    assert parse_source(str(events)) == Source(LINES, str(events))
    (events / "date=2026-01-01").symlink_to(disk)
    assert parse_source(str(events)) == Source(PARQUET, str(events))
    assert list(shown_files(events, ".parquet")) == [events / "date=2026-01-01/part.parquet"]


def test_a_folder_of_several_tables_is_no_source(tmp_path: Path) -> None:
    """Otherwise the rows of tables that jobs have written would be read as events, all of them invalid."""
    for host in "ab":
        (tmp_path / host).mkdir()
        pq.write_table(as_table([make_event()]), tmp_path / host / "x.parquet")
    assert parse_source(str(tmp_path)) == Source(PARQUET, str(tmp_path))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/x.parquet").write_text("damaged")
    assert parse_source(str(tmp_path)) == Source(PARQUET, str(tmp_path))
    (tmp_path / "usage/date=2026-01-01").mkdir(parents=True)
    pq.write_table(pa.table({"hour": [1]}), tmp_path / "usage/date=2026-01-01/x.parquet")
    with pytest.raises(InputError, match=rf"has the tables a, b, usage.* such as {tmp_path}/a$"):
        parse_source(str(tmp_path))
    assert parse_source(str(tmp_path / "a")) == Source(PARQUET, str(tmp_path / "a"))


@pytest.mark.parametrize("text", ["kafka://k:9092", "kafka://k/usage", "/no/such/folder"])
def test_no_source(text: str) -> None:
    with pytest.raises(InputError):
        parse_source(text)


def test_the_clients_settings_are_kafkas() -> None:
    """A topic that has dropped records is an error, and aborted ones are not read."""
    options = kafka_options(Source(KAFKA, "k:9092", "usage", (("security.protocol", "SSL"),)))
    assert options["kafka.security.protocol"] == "SSL"
    assert (options["failOnDataLoss"], options["kafka.isolation.level"]) == ("true", "read_committed")
