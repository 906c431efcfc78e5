"""file_state(): each change of a file, also by a link, is another state."""

from pathlib import Path

from proxy.config.file_state import file_state


def test_a_file_that_does_not_exist_has_no_state(tmp_path: Path) -> None:
    assert file_state(tmp_path / "none") is None


def test_a_replaced_link_is_another_state(tmp_path: Path) -> None:
    one, other, link = tmp_path / "one", tmp_path / "other", tmp_path / "link"
    one.write_text("a")
    other.write_text("a")
    link.symlink_to(one)
    before = file_state(link)
    assert file_state(link) == before
    link.unlink()
    link.symlink_to(other)
    assert file_state(link) != before
