"""The commands export, import and diff: output, requests and exit codes."""

import errno
import os
import signal
from pathlib import Path

import click
import pytest
import yaml
from kio.schema.errors import ErrorCode

from proxy.store.layer_report import ConfigReport, LayerValue
from tests.unit.proxy.cli.quotas.commands_kit import ALICE, QUOTAS, quotas
from tests.unit.proxy.cli.quotas.fake_broker import FakeBroker

DIFF = """\
- user alice: consumer_byte_rate 5
~ user alice: producer_byte_rate 1000000 -> 2
- user alice, client-id app: producer_byte_rate 7
+ user bob: producer_byte_rate 3
- ip <default>: connection_creation_rate 10
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """alice's producer_byte_rate changed, bob new; the rest is missing."""
    path = tmp_path / "quotas.yaml"
    path.write_text(
        "quotas:\n  clients:\n    - entity: {user: alice}\n      producer_byte_rate: 2\n"
        "    - entity: {user: bob}\n      producer_byte_rate: 3\n"
    )
    return path


def test_export_then_diff(filled: FakeBroker, tmp_path: Path) -> None:
    file = tmp_path / "out.yaml"
    assert quotas(filled, "export", "--out", str(file)).exit_code == 0
    assert file.read_text() == quotas(filled, "export").stdout
    result = quotas(filled, "diff", str(file))
    assert (result.exit_code, result.output) == (0, "")


def test_export_to_a_missing_folder_exits_1(filled: FakeBroker, tmp_path: Path) -> None:
    file = tmp_path / "missing" / "out.yaml"
    result = quotas(filled, "export", "--out", str(file))
    assert result.exit_code == 1
    assert str(file) in result.stderr
    assert os.strerror(errno.ENOENT) in result.stderr


def test_export_reports_entities_that_a_file_cannot_represent(filled: FakeBroker) -> None:
    filled.quotas[("user", "<default>"),] = {"producer_byte_rate": 1.0}
    result = quotas(filled, "export")
    assert result.exit_code == 1
    assert 'user "<default>": omitted' in result.stderr
    assert "<default>" not in result.stdout.replace("ip: <default>", "")


def test_export_counts_the_entities_in_the_file(filled: FakeBroker, tmp_path: Path) -> None:
    written = len(filled.quotas)
    filled.quotas[("user", "<default>"),] = {"producer_byte_rate": 1.0}
    file = tmp_path / "out.yaml"
    result = quotas(filled, "export", "--out", str(file))
    assert result.exit_code == 1
    assert f"{file}: {written} entities" in result.stderr


def test_diff(filled: FakeBroker, file: Path) -> None:
    result = quotas(filled, "diff", str(file))
    assert (result.exit_code, result.stdout) == (1, DIFF)
    assert result.stderr == "1 to add, 1 to change, 3 to remove\n"
    assert not filled.alterations


def test_a_dash_is_standard_input(filled: FakeBroker, file: Path) -> None:
    own = os.dup(0)
    with file.open() as given:
        os.dup2(given.fileno(), 0)
    try:
        assert quotas(filled, "diff", "-").stdout == DIFF
    finally:
        os.dup2(own, 0)
        os.close(own)


def test_diff_without_prune(filled: FakeBroker, file: Path) -> None:
    kept = "".join(line for line in DIFF.splitlines(keepends=True) if not line.startswith("-"))
    assert quotas(filled, "diff", str(file), "--no-prune").stdout == kept


def test_prune_leaves_entities_that_a_file_cannot_represent(filled: FakeBroker, tmp_path: Path) -> None:
    named_default = (("user", "<default>"),)
    filled.quotas[named_default] = {"producer_byte_rate": 1.0}
    file = tmp_path / "out.yaml"
    quotas(filled, "export", "--out", str(file))
    note = "1 entities whose real name is <default> keep their quotas"
    diff = quotas(filled, "diff", str(file))
    assert (diff.exit_code, diff.stdout) == (0, "")
    assert note in diff.stderr
    assert note in quotas(filled, "import", str(file), "--prune", "--yes").stderr
    assert filled.quotas == {**QUOTAS, named_default: {"producer_byte_rate": 1.0}}
    assert note not in quotas(filled, "diff", str(file), "--no-prune").stderr


def test_ctrl_c_answers_the_question_of_a_prune(
    filled: FakeBroker, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> bool:
        """What click's question does if its read is interrupted."""
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise click.Abort from None
        return True

    monkeypatch.setattr(click, "confirm", interrupted)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = quotas(filled, "import", str(file), "--prune")
    finally:
        signal.signal(signal.SIGINT, handler)
    assert result.exit_code == 1
    assert "nothing has changed" in result.stderr
    assert filled.alterations == []


def test_import(filled: FakeBroker, file: Path) -> None:
    result = quotas(filled, "import", str(file))
    assert (result.exit_code, result.output) == (0, "2 entities altered, 0 unchanged, 0 rejected\n")
    assert filled.quotas == {
        **QUOTAS,
        ALICE: {"consumer_byte_rate": 5.0, "producer_byte_rate": 2.0},
        (("user", "bob"),): {"producer_byte_rate": 3.0},
    }


def test_import_without_a_difference_sends_nothing(filled: FakeBroker, file: Path) -> None:
    quotas(filled, "import", str(file))
    filled.alterations.clear()
    assert quotas(filled, "import", str(file)).output == "0 entities altered, 2 unchanged, 0 rejected\n"
    assert not filled.alterations


def test_import_and_diff_ignore_temporary_quotas(filled: FakeBroker, file: Path) -> None:
    file.write_text(
        "quotas:\n  clients:\n"
        "    - {entity: {user: alice}, producer_byte_rate: 9, expires: 2126-12-01T00:00:00Z}\n"
    )
    note = f"{file}: ignored 1 quotas with expires"
    result = quotas(filled, "diff", str(file))
    assert "user alice: producer_byte_rate" not in result.stdout
    assert result.stderr.startswith(note)
    assert note in quotas(filled, "import", str(file), "--prune", "--yes").stderr
    assert filled.quotas == {ALICE: {"producer_byte_rate": 1e6}}


def test_import_and_diff_say_that_they_ignore_scopes(filled: FakeBroker, file: Path) -> None:
    file.write_text(
        "quotas:\n  clients:\n"
        "    - {entity: {user: alice}, scope: cluster, producer_byte_rate: 9}\n"
        "    - {entity: {user: bob}, scope: cluster}\n"
    )
    note = f"{file}: ignored the scope of 2 entities"
    for command in ("diff", "import"):
        assert quotas(filled, command, str(file)).stderr.startswith(note)
    assert filled.quotas[ALICE]["producer_byte_rate"] == 9.0
    assert not any(("user", "bob") in entity for entity in filled.quotas)


@pytest.mark.parametrize(
    ("clients", "ignored"),
    [
        ("[{entity: {user: bob}, producer_byte_rate: 3}]", "quotas.scope"),
        ("[{entity: {user: bob}, scope: broker}]", "quotas.scope and the scope of 1 entities"),
        ("[]", "quotas.scope"),
    ],
)
def test_import_and_diff_say_that_they_ignore_the_scope_of_all_quotas(
    clients: str, ignored: str, filled: FakeBroker, file: Path
) -> None:
    file.write_text(f"quotas: {{scope: cluster, clients: {clients}}}\n")
    for command in ("diff", "import"):
        assert quotas(filled, command, str(file)).stderr.startswith(f"{file}: ignored {ignored};")


@pytest.mark.parametrize(("options", "typed"), [(["--yes"], None), ([], "y\n")])
def test_import_with_prune(options: list[str], typed: str | None, filled: FakeBroker, file: Path) -> None:
    assert quotas(filled, "import", str(file), "--prune", *options, input=typed).exit_code == 0
    assert filled.quotas == {
        ALICE: {"producer_byte_rate": 2.0},
        (("user", "bob"),): {"producer_byte_rate": 3.0},
    }


@pytest.mark.parametrize("typed", ["n\n", ""])
def test_prune_asks_for_confirmation(typed: str, filled: FakeBroker, file: Path) -> None:
    result = quotas(filled, "import", str(file), "--prune", input=typed)
    assert result.exit_code == 1
    assert "3 quotas of 3 entities" in result.stderr
    assert "--yes" in result.stderr
    assert filled.quotas == QUOTAS


def test_import_continues_after_a_rejection(filled: FakeBroker, file: Path) -> None:
    filled.fault = lambda entity: (ErrorCode.invalid_request, "too small") if entity == ALICE else None
    result = quotas(filled, "import", str(file))
    assert result.exit_code == 1
    assert result.stderr == (
        "quota-proxy: user alice: not altered: too small (INVALID_REQUEST)\n"
        "1 entities altered, 0 unchanged, 1 rejected\n"
    )
    assert (("user", "bob"),) in filled.quotas


@pytest.mark.parametrize("command", ["import", "diff"])
def test_wrong_file_exits_2(command: str, filled: FakeBroker, file: Path) -> None:
    file.write_text(file.read_text() + "      consumer_byte_rate: fast\n")
    result = quotas(filled, command, str(file))
    assert result.exit_code == 2
    assert f"{file}:7: quotas.clients[1].consumer_byte_rate: " in result.stderr
    assert not filled.alterations


def test_dry_run_shows_the_changes_and_makes_none(filled: FakeBroker, file: Path) -> None:
    result = quotas(filled, "import", str(file), "--prune", "--dry-run")
    assert (result.exit_code, result.stdout) == (0, DIFF)
    assert [request.validate_only for request in filled.alterations] == [True]
    assert filled.quotas == QUOTAS


RATE = "producer.byte.rate"


@pytest.fixture
def proxied(filled: FakeBroker) -> FakeBroker:
    """A proxy with a topic's quota from tools, another from its file, and alice's quotas from its file."""
    filled.of_file = {ALICE: {"consumer_byte_rate": 5.0, "producer_byte_rate": 2.0}}
    filled.lasting = filled.quotas
    filled.report = ConfigReport(
        names={"topic": [RATE], "broker": []},
        topics={"orders": {RATE: [LayerValue("tools", "4")]}, "audit": {RATE: [LayerValue("file", "1")]}},
        brokers={},
    )
    return filled


def test_export_of_a_proxy_has_all_sections(proxied: FakeBroker, tmp_path: Path) -> None:
    file = tmp_path / "out.yaml"
    assert quotas(proxied, "export", "--out", str(file)).exit_code == 0
    written = yaml.safe_load(file.read_text())["quotas"]
    assert written["topics"] == {"audit": {RATE: 1}, "orders": {RATE: 4}}
    assert written["brokers"] == {}
    result = quotas(proxied, "diff", str(file))
    assert (result.exit_code, result.output) == (0, "")


def test_prune_lists_what_it_removes_and_leaves_the_proxys_file(proxied: FakeBroker, file: Path) -> None:
    file.write_text("quotas: {clients: [], topics: {}}")
    result = quotas(proxied, "import", str(file), "--prune", "--yes")
    assert result.exit_code == 0
    removed = [line for line in result.stderr.splitlines() if line.startswith("- ")]
    assert removed == [
        "- user alice: producer_byte_rate 1000000 (2 in the proxy's file)",
        "- user alice, client-id app: producer_byte_rate 7",
        "- ip <default>: connection_creation_rate 10",
        f"- topic orders: {RATE} 4",
    ]
    assert "3 quotas of the proxy's configuration file" in result.stderr
    assert all(entry.ops[-1].key == "back_to_file" for entry in proxied.alterations[0].entries)
    [topic] = proxied.config_alterations[0].resources
    assert [(config.name, config.value) for config in topic.configs] == [
        (RATE, None),
        ("back.to.file", "true"),
    ]


def test_prune_concerns_the_sections_of_the_file_only(proxied: FakeBroker, file: Path) -> None:
    file.write_text("quotas: {topics: {orders: {producer.byte.rate: 4}}}")
    result = quotas(proxied, "diff", str(file))
    assert (result.exit_code, result.stdout) == (0, "")


@pytest.mark.parametrize("command", ["import", "diff"])
def test_a_plain_broker_has_no_quotas_of_topics(command: str, filled: FakeBroker, file: Path) -> None:
    file.write_text("quotas: {topics: {orders: {producer.byte.rate: 4}}}")
    assert quotas(filled, command, str(file)).exit_code == 2
    assert not filled.config_alterations


def test_a_config_that_the_proxy_leaves_to_the_brokers(proxied: FakeBroker, file: Path) -> None:
    file.write_text("quotas: {brokers: {<default>: {leader.replication.throttled.rate: 4}}}")
    result = quotas(proxied, "diff", str(file))
    assert result.exit_code == 2
    assert "quotas.brokers.<default>.leader.replication.throttled.rate" in result.stderr
