"""Ingest from a topic: once or as a stream, with each event once, whatever a run was stopped by."""

import json
import os
import shutil
import signal
import threading
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from pipeline.transforms.duplicates import CONTRADICTION
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.topics import make_topic
from tests.support.messages.usage_events import HOUR_MS, counts, make_event, write_lines
from tests.support.tables import read_rows
from tests.support.waiting import wait_until

RunJob = Callable[..., Result]
MINUTE_MS = 60_000


def stored(out: Path) -> list[int]:
    """Each event's `bytes_in`, which identifies it in these tests."""
    return sorted(row.bytes_in for row in read_rows(out / "events"))


@pytest.fixture
def topic(kafka: EmbeddedKafka) -> str:
    name = f"usage-{uuid.uuid4()}"
    make_topic(kafka, name, 2)
    return name


def send(
    kafka: EmbeddedKafka, topic: str, events: Iterable[dict[str, Any] | str | None], partition: int = -1
) -> None:
    """Send to any partition, or to one: a reader has these events in their order."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for event in events:
        producer.produce(topic, json.dumps(event) if isinstance(event, dict) else event, partition=partition)
    assert producer.flush(30) == 0


@pytest.mark.kafka
def test_a_topic_as_it_is_now(kafka: EmbeddedKafka, topic: str, run_job: RunJob, tmp_path: Path) -> None:
    events = [make_event(at=10_000 * step, bytes_in=step) for step in range(20)]
    send(kafka, topic, [*events, *events[5:9], "no event", None])
    source = f"kafka://{kafka.bootstrap}/{topic}"
    result = run_job("ingest", "--events", source, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert stored(tmp_path) == list(range(20))
    assert counts(result.output, "events read") == [26]
    assert {row.raw for row in read_rows(tmp_path / "quarantine")} == {"no event", ""}


def follow_until_sigterm(
    run_job: RunJob, options: Iterable[object], out: Path, when_it_has_begun: Callable[[], None]
) -> Result:
    """Run the job with --stream follow, and stop it while there are events to read."""

    batches = out / "_checkpoint/ingest/commits"
    before = set(batches.iterdir())
    ended = threading.Event()

    def end() -> None:
        try:
            wait_until(lambda: ended.is_set() or set(batches.iterdir()) != before, "a batch", 60)
            when_it_has_begun()
        finally:
            if not ended.is_set():
                os.kill(os.getpid(), signal.SIGTERM)

    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(end)
        try:
            return run_job(*options, "--stream", "follow", "--every", "0.5")
        finally:
            ended.set()
            ending.result()


@pytest.mark.kafka
def test_a_stream_goes_on_where_it_ended(
    kafka: EmbeddedKafka, topic: str, run_job: RunJob, tmp_path: Path
) -> None:
    """Duplicates are dropped within a batch, between batches and across restarts, also after SIGTERM and when
    a run was killed before its first commit; late events are kept apart.
    """
    source = f"kafka://{kafka.bootstrap}/{topic}"
    options = ("ingest", "--stream", "once", "--late", "10 minutes", "--events", source, "--out", tmp_path)
    events = [make_event(at=MINUTE_MS * step, bytes_in=step) for step in range(30)]
    in_2199 = {**events[0], "interval_start_ms": 7_226_582_400_000}
    contradicting = {**events[3], "bytes_in": 1_000_000, "quota": "x"}
    send(kafka, topic, [*events[:15], events[3], in_2199])
    first = run_job(*options)
    assert first.exit_code == 0, first.output
    assert stored(tmp_path) == list(range(15))
    assert counts(first.output, "events read") == [17]
    assert counts(first.output, f"{tmp_path}/quarantine") == [1]
    shutil.rmtree(tmp_path / "_checkpoint/ingest/commits")
    again = run_job(*options)
    assert again.exit_code == 0, again.output
    assert stored(tmp_path) == list(range(15))
    send(kafka, topic, [events[14], *events[15:22], events[14]])
    followed = follow_until_sigterm(run_job, options, tmp_path, lambda: send(kafka, topic, events[21:], 0))
    assert followed.exit_code == 0, followed.output
    there = stored(tmp_path)
    assert there == list(range(len(there)))
    assert len(there) >= 22
    send(kafka, topic, [make_event(at=-HOUR_MS, bytes_in=77), events[29], contradicting])
    third = run_job(*options)
    assert counts(third.output, f"{tmp_path}/late") == [1]
    assert counts(third.output, f"{tmp_path}/quarantine") == [1]
    assert stored(tmp_path) == list(range(30))
    assert [row.bytes_in for row in read_rows(tmp_path / "late")] == [77]
    quarantined = read_rows(tmp_path / "quarantine")
    ahead = "interval_start_ms is more than a day in the future"
    assert {row.reason: '"bytes_in": 1000000' in row.raw for row in quarantined} == {
        ahead: False,
        CONTRADICTION: True,
    }


@pytest.mark.kafka
def test_a_lost_checkpoint_loses_and_doubles_nothing(
    kafka: EmbeddedKafka, topic: str, run_job: RunJob, tmp_path: Path
) -> None:
    """Without its position, a stream would take new records for old ones, or old ones for new ones."""
    source = f"kafka://{kafka.bootstrap}/{topic}"
    options = ("ingest", "--stream", "once", "--events", source, "--out", tmp_path)
    events = [make_event(at=MINUTE_MS * step, bytes_in=step) for step in range(9)]
    send(kafka, topic, [*events[:5], "no event"])
    assert run_job(*options).exit_code == 0
    shutil.rmtree(tmp_path / "_checkpoint")
    send(kafka, topic, [*events[4:], "no event"])
    rejected = run_job(*options)
    assert rejected.exit_code == 2
    assert f"{tmp_path}/_checkpoint/ingest" in rejected.output
    assert "--checkpoint" in rejected.output
    assert "--recover" in rejected.output
    assert stored(tmp_path) == [0, 1, 2, 3, 4]
    recovered = run_job(*options, "--recover")
    assert recovered.exit_code == 0, recovered.output
    assert stored(tmp_path) == list(range(9))
    assert len(read_rows(tmp_path / "quarantine")) == 1
    shutil.rmtree(tmp_path / "events")
    rejected = run_job(*options)
    assert rejected.exit_code == 2
    assert "is gone" in rejected.output


@pytest.mark.kafka
def test_a_truncated_topic_is_a_sentence(
    kafka: EmbeddedKafka, topic: str, run_job: RunJob, tmp_path: Path
) -> None:
    source = f"kafka://{kafka.bootstrap}/{topic}"
    options = ("ingest", "--stream", "once", "--events", source, "--out", tmp_path)
    events = [make_event(at=MINUTE_MS * step, bytes_in=step) for step in range(60)]
    send(kafka, topic, events[:20])
    assert run_job(*options).exit_code == 0
    send(kafka, topic, events[20:40])
    truncate(kafka, topic)
    send(kafka, topic, events[40:])
    failed = run_job(*options)
    assert failed.exit_code == 1
    assert topic in failed.output
    assert "--recover" in failed.output
    assert len(failed.output.splitlines()) <= 3
    for last in ((*options, "--recover"), options):
        recovered = run_job(*last)
        assert recovered.exit_code == 0, recovered.output
        assert stored(tmp_path) == [*range(20), *range(40, 60)]


def truncate(kafka: EmbeddedKafka, topic: str) -> None:
    """Delete all records that the topic has now."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    ends = [TopicPartition(topic, partition, OFFSET_END) for partition in range(2)]
    for deleted in admin.delete_records(ends).values():
        deleted.result(30)


@pytest.mark.parametrize(
    ("there", "options", "named"),
    [
        ("events/_spark_metadata/0", (), "--stream"),
        ("events/_stream", (), "--stream"),
        ("nothing", ("--recover",), "--stream"),
        (
            "events/_spark_metadata/0",
            ("--stream", "once", "--events", "kafka://127.0.0.1:1/x"),
            "`ingest --events ",
        ),
        (
            "nothing",
            ("--stream", "once", "--events", "kafka://127.0.0.1:1/x", "--late", "soon"),
            "--late 'soon'",
        ),
        ("nothing", ("--stream", "once"), "kafka://HOST:PORT/TOPIC"),
        (
            "events/date=2026-01-01/x.parquet",
            ("--stream", "once", "--events", "kafka://127.0.0.1:1/x"),
            "--checkpoint",
        ),
    ],
)
def test_wrong_input_is_named(
    run_job: RunJob, tmp_path: Path, there: str, options: tuple[str, ...], named: str
) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    (tmp_path / "out" / there).parent.mkdir(parents=True)
    (tmp_path / "out" / there).touch()
    result = run_job("ingest", "--events", lines, "--out", tmp_path / "out", *options)
    assert result.exit_code == 2
    assert named in result.output
