"""The group of commands: its help, and its late imports."""

import subprocess
import sys

from click.testing import CliRunner

from proxy.cli.main import main


def test_other_commands_do_not_import_their_libraries() -> None:
    script = "import sys, proxy.cli.main; sys.exit(bool({'kio', 'aiokafka', 'rich'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_help_names_the_commands() -> None:
    shown = CliRunner().invoke(main, ["quotas", "--help"]).output
    for command in ("list", "get", "set", "delete", "import", "export", "diff", "log"):
        assert f"\n  {command} " in shown


def test_unreachable_server_exits_1() -> None:
    result = CliRunner().invoke(main, ["quotas", "list", "--bootstrap", "127.0.0.1:1"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "127.0.0.1:1: Connection refused" in result.stderr
