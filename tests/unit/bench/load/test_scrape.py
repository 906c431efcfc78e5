"""The scraper asks for both pages in turn, until its time is over."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from bench.load.scrape import scrape

ASKED: list[str] = []


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        ASKED.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"12345")

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_pages_in_turn() -> None:
    with HTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        said = scrape(server.server_port, 0.05)
        server.shutdown()
        thread.join()
    assert said["count"] == len(ASKED) > 0
    assert said["bytes"] == 5 * len(ASKED)
    assert 0 < said["slowest_s"] < 10
    assert ASKED[:2] == ["/metrics", "/api/quotas"][: len(ASKED)]
