"""Each source file has its test file, and each test file has its source file.

`tests/unit/proxy/x/test_y.py`, or several `test_y_<aspect>.py`, test `proxy/x/y.py`; `bench` has the same
layout. The pipeline's tests share a Spark session: `tests/pipeline/x/test_y.py` tests `pipeline/x/y.py`.
Exceptions are listed here, with the test file that tests them instead, or with the reason.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

TESTED_BY: Final[Mapping[str, str]] = {
    # What it checks are the numbers of a record.
    "proxy/quota/sharing/reports.py": "tests/unit/proxy/store/sharing/test_share_records.py",
    # A story of a session needs a whole relay.
    "proxy/relay/fetch/sessions.py": "tests/relay/fetch/test_fetch_sessions.py",
    # The libraries of the admin port are imported when it is used.
    "proxy/server/admin_port/site.py": "tests/unit/proxy/server/admin_port/test_admin_port.py",
    # A scrape of a real proxy has every family.
    "proxy/server/admin_port/metrics.py": "tests/integration/telemetry/test_admin_port.py",
    # The sums and rows of all workers need real workers.
    "proxy/server/workers/pages.py": "tests/integration/sharing/test_workers.py",
    "proxy/server/workers/site.py": "tests/unit/proxy/server/workers/test_supervisor.py",
    # The tables of the same events, from three programs, are compared with each other.
    "bench/pipeline/generate.py": "tests/pipeline/test_peers.py",
    "bench/pipeline/in_duckdb.py": "tests/pipeline/test_peers.py",
    "bench/pipeline/in_polars.py": "tests/pipeline/test_peers.py",
}
"""Source files without a test file of their own, and the test file that tests them."""

UNTESTED: Final[Mapping[str, str]] = {
    "proxy/__main__.py": "calls the command",
    "proxy/admin/broker.py": "a protocol and its values, without code",
    "proxy/admin/rejected.py": "one exception",
    "proxy/server/admin_port/sources.py": "values without code",
    "proxy/server/connection/host.py": "a protocol without code",
    "proxy/server/connection/origin.py": "values without code",
    "proxy/server/listener/listener_context.py": "values without code",
    "proxy/server/shares_log.py": "a protocol without code",
    "proxy/telemetry/metrics/listeners.py": "a protocol without code",
    "proxy/telemetry/topic_name_lookup.py": "a protocol without code",
    "pipeline/errors.py": "one exception",
    "pipeline/report/figures.py": "values without code",
    "bench/__main__.py": "make bench runs it",
    "bench/attacks/__main__.py": "it measures a real Kafka for minutes; its parts are tested",
    "bench/pipeline/__main__.py": "make bench runs it",
    "bench/replication/__main__.py": "calls the command",
    "bench/sharing/__main__.py": "calls the command",
}
"""Source files without any test, and why."""

WHOLE: Final[Mapping[str, str]] = {
    "tests/unit/test_mirror.py": "the tree",
    "tests/unit/test_broken_rules.py": "the code that tests.broken_rules breaks",
    "tests/unit/proxy/quota/kinds/test_every_kind.py": "rules of every kind",
    "tests/pipeline/test_contract.py": "the fields of events, in the proxy and in the pipeline",
    "tests/pipeline/test_end_to_end.py": "the whole path, from clients to tables",
    "tests/pipeline/test_standalone_cluster.py": "a job on a Spark cluster",
    "tests/pipeline/test_killed_runs.py": "runs that are killed while they change files",
    "tests/pipeline/test_full_disk.py": "jobs that cannot write",
    "tests/pipeline/test_peers.py": "the tables, compared with those of other programs",
}
"""Test files without a source file, and what they test."""

NO_SOURCES: Final = ("tests/unit/docs/", "tests/unit/deploy/")
"""Folders of tests for pages, packaging and other files that are no part of the packages."""


def sources() -> Iterator[Path]:
    """Every source file. A package's `__init__.py` only lists what its files have, and these are tested."""
    for package in ("proxy", "pipeline", "bench"):
        for file in sorted((ROOT / package).rglob("*.py")):
            if file.name != "__init__.py":
                yield file.relative_to(ROOT)


def files_of_tests() -> Iterator[Path]:
    for folder in ("tests/unit", "tests/pipeline"):
        for file in sorted((ROOT / folder).rglob("test_*.py")):
            yield file.relative_to(ROOT)


@cache
def pairs() -> frozenset[tuple[Path, Path]]:
    """Each source file with each test file that stands at the place of its tests."""
    in_folder: dict[Path, list[Path]] = {}
    for test in files_of_tests():
        in_folder.setdefault(test.parent, []).append(test)
    found = set()
    for source in sources():
        above = "tests" if source.parts[0] == "pipeline" else "tests/unit"
        folder = Path(above) / source.parent
        name = f"test_{source.stem}"
        for test in in_folder.get(folder, []):
            if test.stem == name or test.stem.startswith(f"{name}_"):
                found.add((source, test))
    return frozenset(found)


def without_tests() -> set[str]:
    """Source files without a test file of their own."""
    return {str(source) for source in {*sources()} - {source for source, _ in pairs()}}


def without_source() -> set[str]:
    """Test files without a source file."""
    alone = {str(test) for test in {*files_of_tests()} - {test for _, test in pairs()}}
    return {test for test in alone if not test.startswith(NO_SOURCES)}


def test_each_source_file_has_its_tests() -> None:
    missing = without_tests() - {*TESTED_BY, *UNTESTED}
    assert sorted(missing) == [], "write test_<file>.py, or say in TESTED_BY what tests it"


def test_each_test_file_has_its_source_file() -> None:
    missing = without_source() - {*WHOLE}
    assert sorted(missing) == [], "name it after its source file, or say in WHOLE what it tests"


def test_exceptions_are_needed() -> None:
    needless = ({*TESTED_BY, *UNTESTED} - without_tests()) | ({*WHOLE} - without_source())
    assert sorted(needless) == [], "remove these entries: they have tests of their own, or are gone"


def test_the_tests_of_exceptions_are_there() -> None:
    assert [test for test in TESTED_BY.values() if not (ROOT / test).exists()] == []
