"""What the commands import, and what not: each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import proxy

HEAVY = ("aiohttp", "aiokafka", "hypothesis", "kio", "msgspec", "prometheus_client", "rich", "uvloop", "yaml")
"""Libraries that take a noticeable time to import."""

COLLECTIONS = 20
"""More than are due once the proxy is imported. The imports alone would bring about hundreds."""


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


def command_that_fails(*arguments: str) -> str:
    """A command that may end with a status, as one does that cannot connect."""
    return (
        f"from contextlib import suppress\nfrom proxy.cli.main import main\n"
        f"with suppress(SystemExit):\n    main({list(arguments)!r})"
    )


def test_a_short_command_imports_no_library(tmp_path: Path) -> None:
    assert imported(command("version"), tmp_path) == set()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["quotas", "--help"], ["check", "--help"], ["explain", "--help"]]
)
def test_help_imports_no_library(arguments: list[str], tmp_path: Path) -> None:
    assert imported(command_that_fails(*arguments), tmp_path) == set()


@pytest.mark.parametrize(
    ("arguments", "libraries"),
    [
        (["quotas", "list"], {"kio", "msgspec"}),
        (["quotas", "list", "--topic", "t"], {"kio", "msgspec"}),
        (["quotas", "get", "--user", "a"], {"kio", "msgspec"}),
        (["quotas", "export"], {"kio", "msgspec"}),
        (["quotas", "log"], {"aiokafka", "kio", "msgspec"}),
    ],
)
def test_commands_for_quotas_import_what_they_need(
    arguments: list[str], libraries: set[str], tmp_path: Path
) -> None:
    """Nothing listens at port 1: each command fails when it connects."""
    code = command_that_fails(*arguments, "--bootstrap", "127.0.0.1:1")
    assert imported(code, tmp_path) == libraries


def test_showing_quotas_needs_no_message_that_changes_them(tmp_path: Path) -> None:
    code = command_that_fails("quotas", "list", "--bootstrap", "127.0.0.1:1")
    code += "\nimport sys"
    code += (
        "\nprint(*{name.split('.')[2] for name in sys.modules if name.count('.') > 2 and 'schema' in name})"
    )
    assert printed(code, tmp_path) == {
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
    arguments: list[str], libraries: set[str], tmp_path: Path
) -> None:
    assert imported(command_that_fails(*arguments), tmp_path) == libraries


def test_the_proxy_listens_before_it_imports_what_serves(tmp_path: Path) -> None:
    """And it serves before it imports its admin port."""
    code = "from proxy.cli.libraries import import_kio\nimport_kio()\nimport proxy.cli.serve"
    assert imported(code, tmp_path) == {"kio", "msgspec", "yaml"}
    code += "\nimport proxy.server.app"
    assert imported(code, tmp_path) == {"kio", "msgspec", "uvloop", "yaml"}


def test_serving_imports_only_the_messages_that_every_start_needs(tmp_path: Path) -> None:
    """Others are for one request, for a login, or for topics that the file may not have."""
    code = "from proxy.cli.libraries import import_kio\nimport_kio()\nimport proxy.server.app, sys"
    code += (
        "\nprint(*{name.split('.')[2] for name in sys.modules if name.count('.') > 2 and 'schema' in name})"
    )
    assert printed(code, tmp_path) == {"api_versions", "metadata", "request_header", "response_header"}


def test_a_worker_imports_no_server_of_http(tmp_path: Path) -> None:
    """Its supervisor has the admin port; the worker only tells it what it counts."""
    code = "from proxy.cli.libraries import import_kio\nimport_kio()\nimport proxy.server.app"
    code += "\nimport proxy.server.workers.link, proxy.server.workers.pages"
    libraries = {"kio", "msgspec", "prometheus_client", "uvloop", "yaml"}
    assert imported(code, tmp_path) == libraries


def test_a_supervisor_imports_nothing_that_serves_clients(tmp_path: Path) -> None:
    code = "from proxy.cli.libraries import import_kio\nimport_kio()\nimport proxy.cli.serve, sys"
    code += "\nimport proxy.server.workers.supervisor, proxy.server.workers.site"
    serving = ("proxy.admin", "proxy.relay", "proxy.server.connection", "proxy.server.listeners")
    code += f"\nprint('found', *(name for name in sys.modules if name.startswith({serving})))"
    assert printed(code, tmp_path) == {"found"}


def test_nothing_is_collected_during_the_imports_of_the_proxy(tmp_path: Path) -> None:
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
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
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


@pytest.mark.parametrize(
    "arguments",
    [
        ["top", "--once", "--admin", "http://127.0.0.1:1"],
        ["quotas", "list", "--bootstrap", "127.0.0.1:1"],
        ["check", "--config", "none"],
        ["run", "--config", "none"],
    ],
)
def test_no_command_writes_into_the_current_folder(arguments: list[str], tmp_path: Path) -> None:
    """Nothing listens at port 1, and the file does not exist: the commands end after their imports."""
    environment = {**os.environ, "PYTHONPATH": str(Path(proxy.__file__).parents[1])}
    command = [sys.executable, "-m", "proxy", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, check=False, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert list(tmp_path.iterdir()) == []
