"""Names and text on terminals of any encoding."""

import os
import subprocess
import sys

import click
import pytest

from proxy.cli.terminal import NAME

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""A terminal for which Python can decode ASCII only."""
SHOW = """
import sys
from proxy.cli.terminal import escape_what_it_cannot_show, write_file
escape_what_it_cannot_show()
print("{}", flush=True)
write_file("{}")
"""


def test_names_are_utf_8() -> None:
    assert NAME("ü") == "ü"
    assert NAME(os.fsdecode("ü".encode())) == "ü"
    assert NAME("ü".encode().decode("ascii", "surrogateescape")) == "ü"
    with pytest.raises(click.BadParameter, match="not UTF-8"):
        NAME("\udcff")
    with pytest.raises(click.BadParameter, match="not UTF-8"):
        NAME("\ud800")  # not from a terminal


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_a_terminal_cannot_show_is_escaped_and_files_are_utf_8(encoding: str) -> None:
    script = SHOW.format("日ü", "日ü")
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True)
    shown = "日ü".encode(encoding, "backslashreplace")
    assert done.stdout == shown + b"\n" + "日ü".encode()


def test_the_commands_take_names_from_any_terminal() -> None:
    command = [sys.executable, "-m", "proxy", "explain", "--admin", "http://127.0.0.1:1", "--user"]
    for name, says in ((b"\xc3\xbc", "Connection refused"), (b"\xff", "not UTF-8")):
        done = subprocess.run(
            [*command, name], env={**os.environ, **ASCII}, capture_output=True, text=True, check=False
        )
        assert says in done.stderr
        assert "Traceback" not in done.stderr
