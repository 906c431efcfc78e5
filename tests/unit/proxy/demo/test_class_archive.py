import pytest

from proxy.demo import class_archive
from proxy.demo.kafka import jars
from tests.unit.proxy.demo.conftest import FakeJava


def test_a_failed_run_is_reported_and_leaves_no_archive(
    fake_java: FakeJava, capsys: pytest.CaptureFixture[str]
) -> None:
    distribution = jars.ensure()
    class_archive.make(distribution)
    assert not distribution.class_archive.exists()
    assert "status 3" in capsys.readouterr().err


def test_an_archive_that_exists_is_left_alone(
    fake_java: FakeJava, capsys: pytest.CaptureFixture[str]
) -> None:
    distribution = jars.ensure()
    distribution.class_archive.write_text("made before")
    capsys.readouterr()
    class_archive.make(distribution)
    assert distribution.class_archive.read_text() == "made before"
    assert capsys.readouterr().err == ""
