"""What the admin port imports: the server of aiohttp, and its client only if other code uses it."""

import subprocess
import sys
from importlib.metadata import version

import pytest

from proxy.server.admin_port.libraries import import_http_server

LOADED = "import sys\nprint('aiohttp.client' in sys.modules, 'aiohttp.web' in sys.modules)"
SERVER = "from proxy.server.admin_port.libraries import import_http_server\nimport_http_server()\n"


def printed(code: str) -> list[str]:
    """The words that the code prints in a process of its own."""
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("site", ["proxy.server.admin_port.site", "proxy.server.workers.site"])
def test_the_admin_site_needs_no_client(site: str) -> None:
    code = "import importlib\nfrom proxy.cli.libraries import import_kio\nimport_kio()\n" + SERVER
    code += f"importlib.import_module({site!r})\n"
    assert printed(code + LOADED) == [
        "False",
        "True",
    ]


@pytest.mark.parametrize(
    "use",
    ["import aiohttp\naiohttp.ClientSession", "from aiohttp import ClientSession", "from aiohttp import *"],
)
def test_other_code_finds_all_of_the_package(use: str) -> None:
    code = f"{use}\nimport aiohttp, sys\nprint(type(aiohttp).__name__, aiohttp.__version__)\n"
    code += "print(*sorted(name for name in vars(aiohttp) if hasattr(aiohttp, name)))"
    assert printed(SERVER + code) == printed("import aiohttp.web\n" + code)


def test_a_module_of_the_package_is_imported_alone() -> None:
    assert printed(SERVER + "from aiohttp import resolver\n" + LOADED) == ["False", "True"]


def test_what_the_package_lacks_is_missing() -> None:
    code = "import aiohttp\nprint(hasattr(aiohttp, 'nothing'), hasattr(aiohttp, 'nothing_else'))"
    assert printed(SERVER + code) == ["False", "False"]


def test_the_server_names_the_version() -> None:
    code = "from aiohttp.http import SERVER_SOFTWARE\nprint(SERVER_SOFTWARE)"
    assert f"aiohttp/{version('aiohttp')}" in printed(SERVER + code)


def test_a_package_that_is_there_stays() -> None:
    """As where a quota callback has imported it."""
    import aiohttp

    import_http_server()
    assert sys.modules["aiohttp"] is aiohttp
