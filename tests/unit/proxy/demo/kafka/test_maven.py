"""Fetching jars, from a repository on this machine."""

import gc
import hashlib
import sys
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from proxy.demo.kafka import maven
from proxy.demo.kafka.maven import ATTEMPTS, FetchFailed, Jar

# jgo leaves it to the garbage collector to close responses that it does not read.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
CONTENT = b"a jar" * 1000
JARS = [Jar("org.example", f"part-{n}", "1.0", hashlib.sha256(CONTENT).hexdigest()) for n in range(20)]


class Repository:
    """Serves CONTENT for each jar, except `bad` first responses of each."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.bad = 0
        self.bad_status = 503
        repository = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.rpartition("/")[2]
                repository.asked[name] += 1
                content, status = CONTENT, 200
                if repository.asked[name] <= repository.bad:
                    content, status = b"damaged", repository.bad_status
                self.send_response(status if name.endswith(".jar") else 404)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.urls = {"local": f"http://127.0.0.1:{self.server.server_port}/maven"}

    def fetch(self, tmp_path: Path) -> list[str]:
        """Fetch JARS, and return the names of the files."""
        into = tmp_path / "into"
        into.mkdir(exist_ok=True)
        done: list[Jar] = []
        cache = tmp_path / "cache"
        maven.fetch(JARS, into, cache=cache, on_jar=done.append, repositories=self.urls)
        assert sorted(done, key=JARS.index) == JARS
        assert {path.read_bytes() for path in into.iterdir()} == {CONTENT}
        return sorted(path.name for path in into.iterdir())


@pytest.fixture
def repository() -> Iterator[Repository]:
    repository = Repository()
    thread = Thread(target=repository.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield repository
    repository.server.shutdown()
    thread.join()
    repository.server.server_close()
    gc.collect()


def test_every_jar_is_fetched(repository: Repository, tmp_path: Path) -> None:
    assert repository.fetch(tmp_path) == sorted(jar.file_name for jar in JARS)
    assert repository.asked[JARS[0].file_name] == 1


@pytest.mark.parametrize("status", [503, 200])
def test_a_bad_response_is_retried(repository: Repository, tmp_path: Path, status: int) -> None:
    repository.bad, repository.bad_status = ATTEMPTS - 1, status
    assert len(repository.fetch(tmp_path)) == len(JARS)


@pytest.mark.parametrize("status", [503, 200])
def test_a_jar_with_another_checksum_is_not_used(repository: Repository, tmp_path: Path, status: int) -> None:
    repository.bad, repository.bad_status = ATTEMPTS, status
    with pytest.raises(FetchFailed, match=r"org\.example:part-\d+:1\.0"):
        repository.fetch(tmp_path)
    assert list((tmp_path / "into").iterdir()) == []
    repository.bad = 0
    assert len(repository.fetch(tmp_path)) == len(JARS)


def test_a_part_of_a_file_of_a_killed_fetch_is_replaced(repository: Repository, tmp_path: Path) -> None:
    jar = JARS[0]
    part = tmp_path / "cache" / "org" / "example" / jar.artifact / jar.version / jar.file_name
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT[:100])
    repository.fetch(tmp_path)


def test_without_jgo_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jgo.maven", None)
    with pytest.raises(FetchFailed, match=r"pip install '\.\[demo\]'"):
        maven.fetch(JARS, tmp_path, cache=tmp_path / "cache")


def test_a_line_of_a_list() -> None:
    jar = Jar.parse("org.example:part-0_2.13:1.0 abc\n")
    assert jar == Jar("org.example", "part-0_2.13", "1.0", "abc")
    assert jar.file_name == "part-0_2.13-1.0.jar"
