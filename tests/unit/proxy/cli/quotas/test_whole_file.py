import errno
import os
import stat
from pathlib import Path

import pytest

from proxy.cli.quotas.whole_file import write_whole
from tests.support.process.resource_limits import files_of_at_most


def test_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "quotas.yaml"
    write_whole(file, "old")
    file.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(file)
    write_whole(link, "ü\n")
    assert link.is_symlink()
    assert file.read_bytes() == "ü\n".encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert sorted(tmp_path.iterdir()) == [link, file]


def test_full_disk_leaves_the_previous_content(tmp_path: Path) -> None:
    file = tmp_path / "quotas.yaml"
    write_whole(file, "old")
    with files_of_at_most(1), pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
        write_whole(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_what_is_no_regular_file_is_written_directly() -> None:
    reading, writing = os.pipe()
    write_whole(Path(f"/dev/fd/{writing}"), "text")
    os.close(writing)
    assert os.read(reading, 10) == b"text"
    os.close(reading)
