"""Quotas of a real cluster: recommended, compared and set through a proxy."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pipeline.cluster.quotas import read_limits
from pipeline.errors import InputError, PipelineError
from proxy.cli.main import main
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.quota.identity import QuotaEntity
from tests.support.messages.usage_events import make_event, write_lines
from tests.support.process.proxy_process import ProxyRunner
from tests.support.waiting import wait_until

IN = "producer_byte_rate"
KIB = 1024
ALICE = QuotaEntity('O\'Neill, "A"', "<b>")
BOB = QuotaEntity("bob", "b")


@pytest.fixture
def run_proxy(tmp_path: Path) -> Iterator[ProxyRunner]:
    with ProxyRunner(tmp_path / "proxy") as runner:
        yield runner


@pytest.mark.kafka
def test_recommended_quotas_are_set_only_with_apply(
    kafka: EmbeddedKafka, run_proxy: ProxyRunner, run_job: Callable[..., Result], tmp_path: Path
) -> None:
    """They are then what `quotas import` would set, and other quotas stay."""
    bootstrap = run_proxy(kafka.bootstrap).bootstrap

    def quotas(command: str, *arguments: object) -> Result:
        return CliRunner().invoke(main, ["quotas", command, "--bootstrap", bootstrap, *map(str, arguments)])

    kept = quotas("set", "--user", "bob", "--client-id", "b", f"{IN}={10 * KIB}", "request_percentage=50")
    assert kept.exit_code == 0, kept.output
    wait_until(lambda: BOB in read_limits(bootstrap), "the quota")
    events = [
        make_event(at=10_000 * step, user=entity.user, client_id=entity.client_id, bytes_in=10 * KIB * rate)
        for entity, rate in ((ALICE, 1000), (BOB, 100))
        for step in range(5)
    ]
    lines = write_lines(tmp_path / "events.jsonl", [*events, make_event(user="once", bytes_in=10 << 20)])
    options = ("recommend", "--events", lines, "--out", tmp_path, "--headroom", "2", "--bootstrap", bootstrap)

    review = run_job(*options, "--review")
    assert review.exit_code == 0, review.output
    changes = [line for line in review.stdout.splitlines() if not line.startswith("#")]
    assert changes == [
        f'+ user "O\'Neill, \\"A\\"", client-id "<b>": {IN} {2000 * KIB}',
        f"~ user bob, client-id b: {IN} {10 * KIB} -> {200 * KIB}",
    ]
    assert "user once, client-id billing" in review.stdout
    assert (tmp_path / "quotas.diff").read_text() == review.stdout
    assert read_limits(bootstrap) == {BOB: {IN: 10 * KIB, "request_percentage": 50.0}}
    shown = quotas("diff", "--no-prune", tmp_path / "quotas.yaml")
    assert shown.stdout.splitlines() == changes

    applied = run_job(*options, "--apply")
    assert applied.exit_code == 0, applied.output
    assert [line for line in applied.stdout.splitlines() if not line.startswith("#")] == changes
    wait_until(lambda: ALICE in read_limits(bootstrap), "the quotas")
    assert quotas("diff", "--no-prune", tmp_path / "quotas.yaml").exit_code == 0
    imported = quotas("import", tmp_path / "quotas.yaml")
    assert imported.exit_code == 0, imported.output
    assert "0 entities altered, 2 unchanged" in imported.stderr
    assert read_limits(bootstrap) == {
        ALICE: {IN: 2000 * KIB},
        BOB: {IN: 200 * KIB, "request_percentage": 50.0},
    }


def test_apply_needs_a_server(run_job: Callable[..., Result], tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "events.jsonl", [make_event()])
    result = run_job("recommend", "--events", lines, "--out", tmp_path, "--apply")
    assert result.exit_code == 2
    assert "--bootstrap" in result.output


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(InputError):
        read_limits("nowhere")
    with pytest.raises(PipelineError):
        read_limits("127.0.0.1:1")
