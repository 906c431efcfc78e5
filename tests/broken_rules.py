"""Breaks ten rules of the proxy, one after the other, and runs tests that must notice it.

    .venv/bin/python -m tests.broken_rules

The rules are broken in a copy of the sources. The exit code is 1 if the tests of a broken rule pass, or if
tests fail before a rule is broken.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
NOT_COPIED: Final = shutil.ignore_patterns(".*", "*.so", "build", "__pycache__", "results", "integration")
TESTS_FAILED: Final = 1
"""Pytest's exit code if it has run the tests and some have failed."""


class Rule(NamedTuple):
    """A rule, the code that keeps it, and code that breaks it."""

    rule: str
    file: str
    code: str
    broken: str
    tests: str


RULES: Final = (
    Rule(
        "the relay reads no request of a muted client",
        "proxy/relay/requests/requests.py",
        "return in_flight.muted_until == 0.0 and not in_flight.awaiting_response",
        "return not in_flight.awaiting_response",
        "tests/relay/throttling/test_throttle.py",
    ),
    Rule(
        "a response has no broker's own address",
        "proxy/wire/addresses.py",
        "string(proxy.host, view.flexible) + i32(proxy.port)",
        "string(host, view.flexible) + i32(port)",
        "tests/relay/connection/test_addresses.py",
    ),
    Rule(
        "ApiVersions offers no version that the proxy does not know",
        "proxy/wire/apis/api_18_api_versions.py",
        "i16(min(newest, api.newest))",
        "i16(newest)",
        "tests/relay/connection/test_api_versions.py",
    ),
    Rule(
        "a client has the name of a login only after the broker has accepted it",
        "proxy/relay/login/authentication.py",
        "        if error_code == NO_ERROR:\n            if not agreed",
        "        if error_code >= NO_ERROR:\n            if not agreed",
        "tests/unit/proxy/relay/login/test_authentication_users.py",
    ),
    Rule(
        "a request of more than 10,000 topics is not read",
        "proxy/wire/apis/api_00_produce.py",
        "if topics > MAX_READ:",
        "if topics > 100 * MAX_READ:",
        "tests/unit/proxy/wire/apis/test_api_00_produce.py",
    ),
    Rule(
        "a consumer is charged as Kafka charges it",
        "proxy/quota/kinds/client_bytes.py",
        "_SIZE_FIELD: Final = 4",
        "_SIZE_FIELD: Final = 0",
        "tests/unit/proxy/quota/kinds/test_client_bytes.py",
    ),
    Rule(
        "a replica in sync is not omitted",
        "proxy/quota/kinds/replication/kind.py",
        "replica.in_sync = replica.caught_up",
        "replica.in_sync = False",
        "tests/unit/proxy/quota/kinds/replication/test_kind.py",
    ),
    Rule(
        "no batch overtakes a rejected one",
        "proxy/quota/rejection/rejected_batches.py",
        "            gate.end = batch.next_sequence\n        return gate.bucket",
        "            gate.end = batch.next_sequence\n        return None",
        "tests/unit/proxy/quota/rejection/test_rejected_batches.py",
    ),
    Rule(
        "a larger part of a limit applies only when all processes have read of it",
        "proxy/quota/sharing/in_force.py",
        "            self._forget(read_by_all)\n        return min(self._parts)",
        "            self._forget(read_by_all)\n        return self._parts[-1]",
        "tests/unit/proxy/quota/sharing/test_in_force.py",
    ),
    Rule(
        "a value that tools have set overrides the file",
        "proxy/store/layers.py",
        "for layer in (self.tools, self.file):\n            temporary",
        "for layer in (self.file, self.tools):\n            temporary",
        "tests/unit/proxy/store/test_layers.py",
    ),
)


def fails(tests: Collection[str], folder: Path) -> bool:
    """Whether one of these test files fails in this copy of the sources. Raises RuntimeError if they cannot
    be run.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "--tb=no", *tests]
    run = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True
    )
    if run.returncode not in (0, TESTS_FAILED):
        raise RuntimeError(f"{' '.join(tests)}: {run.stdout}{run.stderr}")
    return run.returncode == TESTS_FAILED


def is_noticed(rule: Rule, folder: Path) -> bool:
    """Whether the rule's tests fail while it is broken in this copy of the sources."""
    file = folder / rule.file
    kept = file.read_text()
    file.write_text(kept.replace(rule.code, rule.broken))
    try:
        return fails([rule.tests], folder)
    finally:
        file.write_text(kept)


def main() -> int:
    """Run the command; return its exit code."""
    unnoticed = 0
    with tempfile.TemporaryDirectory(prefix="broken-") as name:
        folder = Path(name) / "sources"
        shutil.copytree(ROOT, folder, ignore=NOT_COPIED)
        if fails([rule.tests for rule in RULES], folder):
            print("these tests fail although no rule is broken")
            return 1
        for rule in RULES:
            noticed = is_noticed(rule, folder)
            unnoticed += not noticed
            print(f"{rule.rule}: {rule.tests} {'fails' if noticed else 'PASSES'}", flush=True)
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
