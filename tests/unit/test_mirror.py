"""Each source file has its test file, and each test file has its source file.

`tests/unit/proxy/x/test_y.py`, or several `test_y_<aspect>.py`, test `proxy/x/y.py`; `bench` has the same
layout. The pipeline's tests share a Spark session: `tests/pipeline/test_y.py` tests `pipeline/x/y.py`.
Exceptions are listed here, with the test file that tests them instead, or with the reason.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

TESTED_BY: Final[Mapping[str, str]] = {
    # Parts of one command or one exchange, tested as a whole.
    "proxy/quota/cluster_view.py": "tests/unit/proxy/upstream/test_refresh.py",
    "proxy/quota/kinds/replication/state.py": "tests/unit/proxy/quota/kinds/replication/test_kind.py",
    "proxy/relay/waiting_produce.py": "tests/relay/test_waiting_produce.py",
    "proxy/relay/fetch/session.py": "tests/property/test_fetch_sessions.py",
    "proxy/relay/fetch/sessions.py": "tests/relay/test_fetch_sessions.py",
    "proxy/relay/intercepted.py": "tests/unit/proxy/relay/test_requests.py",
    "proxy/relay/login/authentication.py": "tests/relay/test_authentication.py",
    "proxy/relay/produce_gate.py": "tests/relay/test_rejecting.py",
    "proxy/telemetry/metrics/listeners.py": "tests/unit/proxy/telemetry/metrics/test_metrics.py",
    # What connects to real brokers, or is the process.
    "proxy/admin/authorizer.py": "tests/integration/test_security.py",
    "proxy/server/listener/client_gateway.py": "tests/unit/proxy/server/test_app.py",
    "proxy/server/usage.py": "tests/integration/test_usage.py",
    "proxy/telemetry/topic_name_lookup.py": "tests/integration/test_usage.py",
    # Parts of jobs on Spark.
    "pipeline/cli.py": "tests/pipeline/test_standalone_cluster.py",
    "pipeline/jobs/batch.py": "tests/pipeline/test_chargeback.py",
    "pipeline/jobs/job.py": "tests/pipeline/test_ingest.py",
    "pipeline/jobs/plan_move.py": "tests/pipeline/test_reassignment.py",
    "pipeline/jobs/progress.py": "tests/pipeline/test_standalone_cluster.py",
    "pipeline/filesystem.py": "tests/pipeline/test_tables.py",
    "pipeline/jobs/stream.py": "tests/pipeline/test_ingest.py",
    "pipeline/jobs/stream_batches.py": "tests/pipeline/test_ingest.py",
    "pipeline/report/page.py": "tests/pipeline/test_report.py",
    "pipeline/session.py": "tests/pipeline/test_standalone_cluster.py",
    "pipeline/transforms/buckets.py": "tests/pipeline/test_replay.py",
    "pipeline/transforms/events.py": "tests/pipeline/test_usage.py",
    "pipeline/transforms/headroom.py": "tests/pipeline/test_report.py",
    "pipeline/transforms/played.py": "tests/pipeline/test_replay_topics.py",
    # Parts of a scenario.
    "bench/load/broker.py": "tests/unit/bench/load/test_drive.py",
    "bench/load/poller.py": "tests/unit/bench/load/test_client.py",
    "bench/peers/direct.py": "tests/unit/bench/test_rounds.py",
    "bench/peers/relay.py": "tests/unit/bench/test_rounds.py",
    "bench/replication_load.py": "tests/unit/bench/test_replication.py",
    "bench/replication_move.py": "tests/unit/bench/test_replication.py",
    # What needs a real Kafka and the proxy's process.
    "bench/soak/brokers.py": "tests/integration/test_soak.py",
    "bench/soak/churn.py": "tests/integration/test_soak.py",
    "bench/soak/client_ids.py": "tests/integration/test_soak.py",
    "bench/soak/connections.py": "tests/integration/test_soak.py",
    "bench/soak/crowd.py": "tests/integration/test_soak.py",
    "bench/soak/restarts.py": "tests/integration/test_soak.py",
    "bench/soak/writers.py": "tests/integration/test_soak.py",
}
"""Source files without a test file of their own, and the test file that tests them."""

UNTESTED: Final[Mapping[str, str]] = {
    "proxy/__main__.py": "calls the command",
    "proxy/admin/broker.py": "a protocol and its values, without code",
    "proxy/admin/rejected.py": "one exception",
    "proxy/server/connection/host.py": "a protocol without code",
    "proxy/server/malloc.py": "sets two options of the C library",
    "pipeline/errors.py": "one exception",
    "bench/__main__.py": "make bench runs it",
    "bench/attacks/__main__.py": "it measures a real Kafka for minutes; its parts are tested",
    "bench/peers/tls.py": "make bench runs it",
    "bench/pipeline/__main__.py": "make bench runs it",
    "bench/pipeline/generate.py": "make bench runs it",
    "bench/pipeline/in_pandas.py": "make bench runs it",
    "bench/pipeline/job.py": "make bench runs it",
    "bench/soak/limits.py": "sets one limit of the process",
}
"""Source files without any test, and why."""

WHOLE: Final[Mapping[str, str]] = {
    "tests/unit/test_mirror.py": "the tree",
    "tests/unit/proxy/quota/kinds/test_every_kind.py": "rules of every kind",
    "tests/pipeline/test_contract.py": "the fields of events, in the proxy and in the pipeline",
    "tests/pipeline/test_end_to_end.py": "the whole path, from clients to tables",
    "tests/pipeline/test_ingest.py": "the ingest job",
    "tests/pipeline/test_standalone_cluster.py": "a job on a Spark cluster",
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


def mirrors(test: Path, source: Path) -> bool:
    """Whether a test file stands at the place of a source file's tests."""
    folder = Path("tests/pipeline") if source.parts[0] == "pipeline" else Path("tests/unit") / source.parent
    name = f"test_{source.stem}"
    return test.parent == folder and (test.stem == name or test.stem.startswith(f"{name}_"))


def without_tests() -> set[str]:
    """Source files without a test file of their own."""
    tests = list(files_of_tests())
    return {str(source) for source in sources() if not any(mirrors(test, source) for test in tests)}


def without_source() -> set[str]:
    """Test files without a source file."""
    files = list(sources())
    alone = {str(test) for test in files_of_tests() if not any(mirrors(test, source) for source in files)}
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
