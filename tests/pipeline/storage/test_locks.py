"""Locks of tables: one run at a time writes a table."""

import threading
from pathlib import Path

import pytest

from pipeline.errors import PipelineError
from pipeline.storage.locks import locked


def test_one_run_at_a_time_writes_a_table(tmp_path: Path) -> None:
    """Also if one names the folder by a URL. Other tables of the folder are free."""
    for _ in range(2):
        with locked(str(tmp_path), "usage"), locked(str(tmp_path), "throttle"):
            for folder in (str(tmp_path), tmp_path.as_uri(), f"{tmp_path}/"):
                with pytest.raises(PipelineError, match="usage"), locked(folder, "usage"):
                    pass


def test_a_run_that_waits_goes_on_when_the_other_has_ended(tmp_path: Path) -> None:
    entered = threading.Event()

    def wait() -> None:
        with locked(str(tmp_path), "quarantine", wait=True):
            entered.set()

    thread = threading.Thread(target=wait)
    with locked(str(tmp_path), "quarantine"):
        thread.start()
        assert not entered.is_set()
    thread.join(10)
    assert entered.is_set()


def test_there_is_no_lock_where_the_system_has_none(tmp_path: Path) -> None:
    for folder in ("s3a://lake/data", f"{tmp_path}/missing"):
        with locked(folder, "usage"), locked(folder, "usage"):
            pass
    assert not list(tmp_path.iterdir())
