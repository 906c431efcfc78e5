"""Errors read as one sentence with the place of the mistake."""

from pathlib import Path

from proxy.errors import SettingsError, spell


def test_key_is_spelled_as_in_the_file() -> None:
    assert spell(("listeners", 0, "upstream", "bootstrap", 1)) == "listeners[0].upstream.bootstrap[1]"
    assert spell(("quotas", "topics", "<default>")) == "quotas.topics.<default>"
    assert spell(()) == ""


def test_settings_error_says_as_much_as_it_knows() -> None:
    error = SettingsError("expected int, got 'abc'", ("admin", "port"))
    assert str(error) == "admin.port: expected int, got 'abc'"
    assert str(error.at(Path("a.yaml"), None)) == "a.yaml: admin.port: expected int, got 'abc'"
    assert str(error.at(Path("a.yaml"), 7)) == "a.yaml:7: admin.port: expected int, got 'abc'"
