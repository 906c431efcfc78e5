"""Files of usage events: whole lines, bounded files, and of these the newest."""

import errno
import shutil
import time
from pathlib import Path

import pytest

from proxy.telemetry.usage.events import Encoded
from proxy.telemetry.usage.file_sink import PATTERN, FileSink
from proxy.telemetry.usage.sink import SinkUnavailable
from tests.support.process.resource_limits import files_of_at_most

LINE = b'{"v":1}' + b" " * 92
"""With its newline, 100 bytes."""


def lines(count: int) -> list[Encoded]:
    return [Encoded(b"k", LINE)] * count


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.glob(PATTERN))


def sizes(folder: Path) -> list[int]:
    return [file.stat().st_size for file in sorted(folder.glob(PATTERN))]


async def test_events_are_lines(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "usage"
    sink = FileSink(folder, "me", 10_000, 3)
    await sink.deliver([Encoded(b"k", b'{"a":1}'), Encoded(b"k", b'{"b":"\xc3\xa9"}')])
    await sink.deliver([Encoded(b"k", b'{"c":3}')])
    (file,) = folder.glob(PATTERN)
    assert file.name.endswith("Z-me.jsonl")
    assert file.read_bytes() == b'{"a":1}\n{"b":"\xc3\xa9"}\n{"c":3}\n'


async def test_files_are_bounded_and_the_newest_are_kept(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, "me", 1000, 3)
    await sink.deliver(lines(25))
    assert sizes(tmp_path) == [1000, 1000, 500]
    await sink.deliver(lines(6))
    assert sizes(tmp_path) == [1000, 1000, 100]
    (tmp_path / "usage-mine.txt").write_text("kept")
    await sink.deliver(lines(40))
    assert sizes(tmp_path) == [1000, 1000, 100]
    assert (tmp_path / "usage-mine.txt").exists()


async def test_a_single_file_can_be_kept(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, "me", 1000, 1)
    await sink.deliver(lines(15))
    assert sizes(tmp_path) == [500]


async def test_no_process_deletes_the_file_to_which_another_one_appends(tmp_path: Path) -> None:
    """As the workers of one host do."""
    quiet, busy = FileSink(tmp_path, "quiet", 1000, 1), FileSink(tmp_path, "busy", 1000, 1)
    await quiet.deliver(lines(1))
    await busy.deliver(lines(35))
    await quiet.deliver(lines(1))
    assert sizes(tmp_path) == [200, 500]
    await quiet.release()
    await busy.deliver(lines(6))
    assert sizes(tmp_path) == [100], "of a process that has ended, the newest files are kept"
    await busy.release()


async def test_an_event_larger_than_a_file_gets_its_own_file(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, "me", 50, 9)
    await sink.deliver(lines(2))
    assert sizes(tmp_path) == [100, 100]


async def test_a_full_disk_leaves_no_partial_line(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, "me", 10_000, 3)
    await sink.deliver(lines(2))
    # There is room for one and a half of the next three lines.
    with files_of_at_most(350), pytest.raises(SinkUnavailable, match=str(tmp_path)) as failed:
        await sink.deliver(lines(3))
    assert isinstance(failed.value.__cause__, OSError)
    assert failed.value.__cause__.errno == errno.EFBIG
    assert sizes(tmp_path) == [200]
    await sink.deliver(lines(3))
    assert sizes(tmp_path) == [500]


async def test_a_full_disk_costs_no_file_that_was_written(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, "me", 1000, 3)
    await sink.deliver(lines(30))
    before = names(tmp_path)
    for _ in range(5):
        with files_of_at_most(0), pytest.raises(SinkUnavailable):
            await sink.deliver(lines(3))
        restarted = FileSink(tmp_path, "me-again", 1000, 3)
        with files_of_at_most(0), pytest.raises(SinkUnavailable):
            await restarted.deliver(lines(3))
    assert names(tmp_path) == before, "no empty files either"
    await sink.deliver(lines(3))
    assert sizes(tmp_path) == [1000, 1000, 300]


async def test_the_newest_are_kept_after_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + 3_600_000_000_000)
    before = FileSink(tmp_path, "ahead", 1000, 3)
    await before.deliver(lines(20))
    await before.release()
    monkeypatch.setattr(time, "time_ns", lambda: now)
    sink = FileSink(tmp_path, "me", 1000, 3)
    await sink.deliver(lines(25))
    assert [name.split("-")[2] for name in names(tmp_path)] == ["me.jsonl"] * 3
    assert sizes(tmp_path) == [1000, 1000, 500]


async def test_a_file_with_another_name_of_the_pattern(tmp_path: Path) -> None:
    (tmp_path / "usage-zzz.jsonl").write_text("")
    await FileSink(tmp_path, "me", 1000, 3).deliver(lines(1))
    assert sizes(tmp_path) == [100, 0]


async def test_a_file_that_was_deleted_is_created_again(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, "me", 1000, 3)
    await sink.deliver(lines(2))
    [name] = names(tmp_path)
    (tmp_path / name).unlink()
    await sink.deliver(lines(3))
    assert sizes(tmp_path) == [300]


async def test_a_folder_that_was_deleted_is_created_again(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "usage", "me", 1000, 3)
    await sink.deliver(lines(1))
    shutil.rmtree(tmp_path / "usage")
    await sink.deliver(lines(2))
    assert sizes(tmp_path / "usage") == [200]


async def test_a_file_that_was_moved_gets_no_successor_of_its_name(tmp_path: Path) -> None:
    """Moving the successor to the same place would overwrite the events of the first."""
    sink = FileSink(tmp_path, "me", 1000, 3)
    await sink.deliver(lines(1))
    (moved,) = names(tmp_path)
    (tmp_path / moved).rename(tmp_path / "read")
    await sink.deliver(lines(2))
    (name,) = names(tmp_path)
    assert name != moved


async def test_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sink = FileSink(tmp_path / "file" / "usage", "me", 1000, 3)
    with pytest.raises(SinkUnavailable, match="file/usage: "):
        await sink.deliver(lines(1))
