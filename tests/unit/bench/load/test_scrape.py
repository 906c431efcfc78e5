"""The scraper asks for both pages in turn, until its time is over."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from bench.load.scrape import scrape


class Server(HTTPServer):
    """It records the pages that were asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Pages)
        self.asked: list[str] = []


class Pages(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"12345")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_pages_in_turn_and_at_least_one(seconds: float) -> None:
    """A machine may pause for as long as the scrapes."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        said = scrape(server.server_port, seconds)
        server.shutdown()
        thread.join()
    asked = server.asked
    assert said["count"] == len(asked) > 0
    assert said["bytes"] == 5 * len(asked)
    assert 0 < said["slowest_s"] < 10
    assert asked[:2] == ["/metrics", "/api/quotas"][: len(asked)]
