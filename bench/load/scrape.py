"""Scrapes an admin port: `python -m bench.load.scrape --port PORT --seconds 10`.

Requests /metrics and /api/quotas in turn; prints one line of JSON: the number of responses, their bytes, and
the time of the slowest.
"""

import argparse
import http.client
import json
import time

PAGES = ("/metrics", "/api/quotas")


def scrape(port: int, seconds: float) -> dict[str, float]:
    """Scrape for this number of seconds, and at least once; return what the command prints."""
    count = size = 0
    slowest = 0.0
    end = time.monotonic() + seconds
    while not count or time.monotonic() < end:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        started = time.monotonic()
        connection.request("GET", PAGES[count % len(PAGES)])
        size += len(connection.getresponse().read())
        slowest = max(slowest, time.monotonic() - started)
        connection.close()
        count += 1
    return {"count": count, "bytes": size, "slowest_s": slowest}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m bench.load.scrape", description="Scrapes a proxy.")
    parser.add_argument("--port", type=int, required=True, help="admin port, on the loopback address")
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="how long to scrape (default: %(default)s)"
    )
    options = parser.parse_args()
    print(json.dumps(scrape(options.port, options.seconds)))


if __name__ == "__main__":
    main()
