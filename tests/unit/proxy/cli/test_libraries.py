"""What the commands import, and what not: each in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HEAVY = ("aiohttp", "aiokafka", "hypothesis", "kio", "msgspec", "prometheus_client", "rich", "uvloop", "yaml")
"""Libraries that take a noticeable time to import."""

COLLECTIONS = 20
"""More than are due once the proxy is imported. The imports alone would bring about hundreds."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The current folder of the commands: none writes into it."""
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


def imported(code: str, folder: Path) -> set[str]:
    """Which of the heavy libraries are imported when the code has run."""
    code += f"\nimport sys\nprint(*(name for name in {HEAVY} if sys.modules.get(name)))"
    return printed(code, folder)


def printed(code: str, folder: Path) -> set[str]:
    """The words of the last line that the code prints."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return set(done.stdout.splitlines()[-1].split())


def command(*arguments: str) -> str:
    return f"from proxy.cli.main import main\nmain({list(arguments)!r}, standalone_mode=False)"


def commands_that_end(*commands: list[str]) -> str:
    """Commands that may end with a status, as those do that cannot connect."""
    lines = ["from contextlib import suppress", "from proxy.cli.main import main"]
    return "\n".join([*lines, *(f"with suppress(SystemExit):\n    main({each!r})" for each in commands)])


def test_a_short_command_imports_no_library(folder: Path) -> None:
    assert imported(command("version"), folder) == set()


def test_help_imports_no_library(folder: Path) -> None:
    commands = [["--help"], ["quotas", "--help"], ["check", "--help"], ["explain", "--help"]]
    assert imported(commands_that_end(*commands), folder) == set()


NOWHERE = ["--bootstrap", "127.0.0.1:1"]
"""Nothing listens at port 1: each command fails when it connects."""


@pytest.mark.parametrize(
    ("commands", "libraries"),
    [
        (
            [["list"], ["list", "--topic", "t"], ["get", "--user", "a"], ["export"]],
            {"kio", "msgspec"},
        ),
        ([["log"]], {"aiokafka", "kio", "msgspec"}),
    ],
)
def test_commands_for_quotas_import_what_they_need(
    commands: list[list[str]], libraries: set[str], folder: Path
) -> None:
    code = commands_that_end(*(["quotas", *each, *NOWHERE] for each in commands))
    assert imported(code, folder) == libraries


def test_showing_quotas_needs_no_message_that_changes_them(folder: Path) -> None:
    code = commands_that_end(["quotas", "list", *NOWHERE])
    code += "\nimport sys"
    code += (
        "\nprint(*{name.split('.')[2] for name in sys.modules if name.count('.') > 2 and 'schema' in name})"
    )
    assert printed(code, folder) == {
        "api_versions",
        "describe_client_quotas",
        "describe_configs",
        "request_header",
        "response_header",
    }


@pytest.mark.parametrize(
    ("arguments", "libraries"),
    [
        (["check", "--config", "none"], {"kio", "msgspec", "yaml"}),
        (["explain", "--user", "a", "--admin", "http://127.0.0.1:1"], set()),
        (["top", "--once", "--admin", "http://127.0.0.1:1"], {"rich"}),
    ],
)
def test_commands_for_one_proxy_import_what_they_need(
    arguments: list[str], libraries: set[str], folder: Path
) -> None:
    assert imported(commands_that_end(arguments), folder) == libraries


def test_the_proxy_listens_before_it_imports_what_serves(folder: Path) -> None:
    """And it serves before it imports its admin port."""
    code = "from proxy.cli.libraries import import_kio\nimport_kio()\nimport proxy.cli.serve"
    assert imported(code, folder) == {"kio", "msgspec", "yaml"}
    code += "\nimport proxy.server.app"
    assert imported(code, folder) == {"kio", "msgspec", "uvloop", "yaml"}


def test_serving_imports_only_the_messages_that_every_start_needs(folder: Path) -> None:
    """Others are for one request, for a login, or for topics that the file may not have."""
    code = "from proxy.cli.libraries import import_kio\nimport_kio()\nimport proxy.server.app, sys"
    code += (
        "\nprint(*{name.split('.')[2] for name in sys.modules if name.count('.') > 2 and 'schema' in name})"
    )
    assert printed(code, folder) == {"api_versions", "metadata", "request_header", "response_header"}


def test_a_worker_imports_no_server_of_http(folder: Path) -> None:
    """Its supervisor has the admin port; the worker only tells it what it counts."""
    code = "from proxy.cli.libraries import import_kio\nimport_kio()\nimport proxy.server.app"
    code += "\nimport proxy.server.workers.link, proxy.server.workers.pages"
    libraries = {"kio", "msgspec", "prometheus_client", "uvloop", "yaml"}
    assert imported(code, folder) == libraries


def test_a_supervisor_imports_nothing_that_serves_clients(folder: Path) -> None:
    code = "from proxy.cli.libraries import import_kio\nimport_kio()\nimport proxy.cli.serve, sys"
    code += "\nimport proxy.server.workers.supervisor, proxy.server.workers.site"
    serving = ("proxy.admin", "proxy.relay", "proxy.server.connection", "proxy.server.listeners")
    code += f"\nprint('found', *(name for name in sys.modules if name.startswith({serving})))"
    assert printed(code, folder) == {"found"}


def test_nothing_is_collected_during_the_imports_of_the_proxy(folder: Path) -> None:
    """The file does not exist, so the command ends when it has imported everything."""
    code = """
import gc
from proxy.cli.main import main
collections = []
gc.callbacks.append(lambda phase, info: collections.append(phase))
try:
    main(["run", "--config", "none"])
except SystemExit:
    print(len(collections), gc.isenabled())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder
    )
    count, enabled = done.stdout.split()
    assert enabled == "True"
    assert int(count) < COLLECTIONS


def test_kio_does_not_import_hypothesis(tmp_path: Path) -> None:
    """Wherever hypothesis is installed, as it is here, kio imports it."""
    with_it = "import kio.static.primitive"
    assert "hypothesis" in imported(with_it, tmp_path)
    without_it = "from proxy.cli.libraries import import_kio\nimport_kio()\nimport kio.schema.types"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert imported(without_it, empty) == {"kio"}
    assert list(empty.iterdir()) == []
    kept = "import hypothesis\n" + without_it + "\nassert hypothesis is sys.modules['hypothesis']"
    assert imported("import sys\n" + kept, tmp_path) == {"hypothesis", "kio"}
