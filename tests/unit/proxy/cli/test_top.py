"""`quota-proxy top`, before an admin port that is made up."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.cells import cell_len
from rich.console import Console

from proxy.cli.admin_port import AdminPort
from proxy.cli.main import main
from proxy.cli.top import follow, lines, table
from proxy.errors import UpstreamUnavailable


def bucket(kind: str = "producer_byte_rate", **values: Any) -> dict[str, Any]:
    made = {
        "kind": kind,
        "broker": 1,
        "entity": {"user": "alice"},
        "mode": "enforce",
        "limit": 1048576.0,
        "share": values.get("limit", 1048576.0),
        "rate": 524288.0,
        "throttled": False,
        "throttled_requests": 0,
        "throttle_seconds": 0.0,
    }
    assert values.keys() <= made.keys()
    return {**made, **values}


class Server:
    """Sends `pages` to a client that sends `token`, if there is one."""

    def __init__(self) -> None:
        self.pages: dict[str, object] = {"/api/quotas": {"quotas": []}}
        self.token = ""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                allowed = not server.token or self.headers["Authorization"] == f"Bearer {server.token}"
                body = json.dumps(server.pages.get(self.path)).encode()
                self.send_response(200 if allowed and self.path in server.pages else 401)
                self.end_headers()
                self.wfile.write(body if allowed else b"")

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.http.shutdown()
    thread.join()
    server.http.server_close()


def test_table_has_throttled_buckets_first() -> None:
    found = lines(
        [
            bucket(),
            bucket("request_percentage", entity={"client-id": "c"}, limit=50, rate=12.5),
            bucket("controller_mutation_rate", broker=None, limit=5, rate=60, mode="observe", throttled=True),
            bucket("consumer.byte.rate", entity={"topic": "t", "partition": 3}, limit=0, rate=7),
            bucket(entity={}, rate=1048576 * 2, throttled=True, throttle_seconds=1.25),
        ]
    )
    assert [" ".join(line.split()) for line in found] == [
        "QUOTA ENTITY BROKER LIMIT/S NOW/S USED WAITED STATE",
        "controller_mutation_rate user alice - 5 60 1200% 0.0 s would be throttled",
        "producer_byte_rate - 1 1 MiB 2 MiB 200% 1.2 s throttled",
        "producer_byte_rate user alice 1 1 MiB 512 KiB 50% 0.0 s",
        "request_percentage client-id c 1 50 12.5 25% 0.0 s",
        "consumer.byte.rate topic t, partition 3 1 0 B 7 B 0% 0.0 s",
        "5 buckets, 2 throttled",
    ]


def test_names_cannot_change_the_terminal() -> None:
    """Clients choose their client ids."""
    _, row, _ = lines([bucket(entity={"user": "a b", "client-id": "x\x1b[2J\n"})])
    assert row.split("  ")[1] == r'user "a b", client-id "x\u001b[2J\n"'


def test_buckets_beyond_the_screen_are_counted() -> None:
    assert lines([bucket()] * 5, 2)[-1] == "5 buckets, 0 throttled; 3 are not shown"
    assert len(lines([bucket()] * 5, 2)) == 4
    assert lines([bucket()] * 5, -1) == lines([bucket()] * 5, 0)


LONG = [
    bucket(entity={"user": "a-rather-long-name-of-a-service", "client-id": "billing"}, throttled=True),
    bucket("controller_mutation_rate", entity={"user": "日本語日本語日本語日本語"}, limit=5, rate=60),
]


@pytest.mark.parametrize(
    ("width", "head"),
    [
        (200, "QUOTA ENTITY BROKER LIMIT/S NOW/S USED WAITED STATE"),
        (80, "QUOTA ENTITY LIMIT/S NOW/S USED STATE"),
        (60, "QUOTA ENTITY USED STATE"),
        (46, "QUOTA ENTITY USED STATE"),
        (40, "QUOTA ENTITY STATE"),
        (20, "QUOTA ENTITY STATE"),
    ],
)
def test_a_narrow_terminal_shows_less(width: int, head: str) -> None:
    """Who is throttled is shown to the last."""
    shown = lines(LONG, width=width)[:-1]
    assert " ".join(shown[0].split()) == head
    assert all(line.endswith("throttled") for line in shown[1:2])
    assert max(map(cell_len, shown)) <= max(width, 39)
    assert all(".." in line for line in shown[1:]) == (width < 200)


def test_short_names_stay_whole() -> None:
    """Columns are omitted only for names that do not fit."""
    assert lines([bucket()], width=77) == lines([bucket()])


def test_shares_are_shown_if_proxies_share_limits(server: Server) -> None:
    """Used is a part of what this proxy may use."""
    server.pages["/api/quotas"] = {"quotas": [bucket(share=524288.0), bucket("request_percentage", limit=50)]}
    server.pages["/api/shares"] = {"instances": [{"instance": "a, b"}, {"instance": "c"}]}
    assert [" ".join(line.split()) for line in table(AdminPort(server.url))] == [
        "QUOTA ENTITY BROKER LIMIT/S SHARE/S NOW/S USED WAITED STATE",
        "request_percentage user alice 1 50 50 5.243e+05 1048576% 0.0 s",
        "producer_byte_rate user alice 1 1 MiB 512 KiB 512 KiB 100% 0.0 s",
        '2 buckets, 0 throttled; limits are shared by "a, b", c',
    ]
    server.pages["/api/shares"] = {"instances": [{"instance": "a", "processes": 2}], "degraded": True}
    *_, summary = table(AdminPort(server.url))
    assert "shared by a (2 processes)" in summary
    assert "degraded" in summary


def test_once_prints_the_table(server: Server) -> None:
    server.pages["/api/quotas"] = {"quotas": [bucket(throttled=True)]}
    result = CliRunner().invoke(main, ["top", "--admin", server.url])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "alice" in result.stdout
    assert "throttled" in result.stdout


def test_a_dumb_terminal_gets_the_table_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot show a table that changes."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal for rich
    result = CliRunner().invoke(main, ["top", "--admin", server.url])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1:] == ["0 buckets, 0 throttled"]


def test_token_is_sent(server: Server, tmp_path: Path) -> None:
    server.token = "secret"
    result = CliRunner().invoke(main, ["top", "--once", "--admin", server.url])
    assert result.exit_code == 1
    assert "set --token-file" in result.stderr
    (tmp_path / "token").write_text("secret\n")
    result = CliRunner().invoke(
        main, ["top", "--once", "--admin", server.url, "--token-file", str(tmp_path / "token")]
    )
    assert result.exit_code == 0


def test_other_servers_are_reported(server: Server) -> None:
    server.pages["/api/quotas"] = ["something else"]
    for url, says in (
        (server.url, "is not from a quota proxy"),
        ("http://127.0.0.1:1", "127.0.0.1:1: Connection refused"),
    ):
        result = CliRunner().invoke(main, ["top", "--once", "--admin", url])
        assert result.exit_code == 1
        assert says in result.stderr
        assert "set --admin" in result.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--admin", "localhost:9644"], "expected http://HOST:PORT"),
        (["--admin", "http://localhost:port"], "expected http://HOST:PORT"),
        (
            ["--admin", "https://localhost:1", "--ca", "nowhere.pem"],
            "nowhere.pem: No such file",
        ),
    ],
)
def test_wrong_usage(options: list[str], says: str) -> None:
    result = CliRunner().invoke(main, ["top", *options])
    assert result.exit_code == 2
    assert says in result.stderr


def test_follow_retries_later_requests(server: Server) -> None:
    looks = 0

    def pause(seconds: float) -> None:
        nonlocal looks
        looks += 1
        server.pages["/api/quotas"] = {1: ["away"], 2: {"quotas": [bucket(entity={"user": "bob"})]}}.get(
            looks
        )
        if looks == 3:
            raise KeyboardInterrupt

    console = Console(force_terminal=True, width=120, height=20)
    with console.capture() as shown:
        follow(AdminPort(server.url), console, 2.0, pause)
    assert "0 buckets" in shown.get()
    assert "--admin" in shown.get(), "the error of the second request"
    assert "user bob" in shown.get()


def test_follow_raises_if_the_first_request_fails() -> None:
    with pytest.raises(UpstreamUnavailable):
        follow(AdminPort("http://127.0.0.1:1"), Console(), 1.0)
