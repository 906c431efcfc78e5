"""The group of commands: its help, and its late imports."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from proxy.cli.main import main
from proxy.cli.quotas.commands import COMMANDS, quotas


def test_other_commands_do_not_import_their_libraries() -> None:
    script = "import sys, proxy.cli.main; sys.exit(bool({'kio', 'aiokafka', 'rich'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_help_names_the_commands() -> None:
    shown = CliRunner().invoke(main, ["quotas", "--help"]).output
    for command in ("list", "get", "set", "delete", "import", "export", "diff", "log"):
        assert f"\n  {command} " in shown


def test_help_has_the_first_sentence_of_each_command() -> None:
    """The group has them twice: it shows them without importing the commands."""
    context = click.Context(quotas)
    for name in quotas.list_commands(context):
        command = quotas.get_command(context, name)
        assert command is not None
        assert COMMANDS[name].help == command.get_short_help_str(limit=1000)


def test_unreachable_server_exits_1() -> None:
    result = CliRunner().invoke(main, ["quotas", "list", "--bootstrap", "127.0.0.1:1"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "127.0.0.1:1: Connection refused" in result.stderr


@pytest.mark.parametrize(("wrong", "shown"), [("lst", "list"), ("create", "export"), ("--user", "--user")])
def test_a_command_that_does_not_exist(wrong: str, shown: str) -> None:
    result = CliRunner().invoke(main, ["quotas", wrong])
    assert result.exit_code == 2
    assert shown in result.stderr
