"""`quota-proxy explain`: what it prints, and wrong usage."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from click.testing import CliRunner

from proxy.cli.explain import line_of_lists, lines
from proxy.cli.main import main

FOUND: list[dict[str, Any]] = [
    {
        "quota": "producer_byte_rate",
        "limit": 2097152.0,
        "mode": "observe",
        "scope": "cluster",
        "entity": {"user": "alice"},
        "callback": False,
        "candidates": [
            {
                "entity": {"user": "alice"},
                "values": [
                    {"from": "tools", "value": 2097152.0, "expires_at_ms": 1000},
                    {"from": "tools", "value": None},
                    {"from": "file", "value": 5.0},
                ],
            },
            {"entity": {"user": "<default>"}, "values": [{"from": "file", "value": 1.0}]},
        ],
    },
    {"quota": "request_percentage", "limit": None, "mode": "enforce", "entity": None, "candidates": []},
    {
        "quota": "producer.byte.rate.action",
        "limit": "throttle",
        "mode": "enforce",
        "entity": None,
        "candidates": [],
    },
]

LISTS: dict[str, Any] = {"from_bytes": 4096, "max_bytes": 65536, "in_flight": 0, "waiting": 2}


def test_lines() -> None:
    assert list(lines(FOUND)) == [
        "producer_byte_rate: 2097152 of user alice, over the cluster, only observed",
        "  user alice: 2097152 by tools until 1970-01-01T00:00:01Z, otherwise no limit by tools, "
        "otherwise 5 in the file",
        "  user <default>: 1 in the file",
        "request_percentage: no limit",
        "producer.byte.rate.action: throttle by default",
    ]
    assert len(list(lines([{"exempt": True}]))) == 1
    assert len(list(lines([]))) == 1


def test_line_of_lists() -> None:
    lists: dict[str, Any] = {"from_bytes": 4096, "max_bytes": 65536}
    said = line_of_lists(lists)
    assert "4096" in said
    assert "limits.max_list_bytes_in_flight" in said
    assert "waiting" not in said
    assert line_of_lists({**lists, "in_flight": 1, "waiting": 3}).endswith("now 1 in flight, 3 waiting")


@pytest.fixture
def admin() -> Iterator[tuple[str, list[str]]]:
    """An admin port that explains, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            wrong = "nobody" in self.path
            found = (
                {"quotas": FOUND, "note": "there is no such topic"}
                if "topic" in self.path
                else {"quotas": FOUND, "lists": LISTS}
            )
            body = json.dumps({"error": "no such name"} if wrong else found).encode()
            self.send_response(400 if wrong else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_command(admin: tuple[str, list[str]]) -> None:
    url, asked = admin
    result = CliRunner().invoke(main, ["explain", "--admin", url, "--user", "a b", "--client-id", "ü"])
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 6)
    assert result.stdout.splitlines()[-1] == line_of_lists(LISTS)
    assert asked == ["/api/explain?user=a+b&client-id=%C3%BC"]
    result = CliRunner().invoke(main, ["explain", "--admin", url, "--user", "nobody"])
    assert result.exit_code == 1
    assert "no such name" in result.stderr
    result = CliRunner().invoke(main, ["explain", "--admin", url, "--topic", "nope"])
    assert (result.exit_code, result.stderr) == (0, "quota-proxy: there is no such topic\n")


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--user", ""],
        ["--user", "a", "--topic", "t"],
        ["--ip", "::1", "--broker", "1"],
        ["--user", "a", "--admin", "x"],
    ],
)
def test_wrong_usage(options: list[str]) -> None:
    assert CliRunner().invoke(main, ["explain", *options]).exit_code == 2
