"""The commands: what they print where, what they send, and their exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kio.schema.errors import ErrorCode

from proxy.cli.main import main
from proxy.cli.quotas.entity import Entity, Quotas
from tests.unit.proxy.cli.quotas.fake_broker import FakeBroker

ALICE: Entity = (("user", "alice"),)
ALICE_APP: Entity = (("user", "alice"), ("client-id", "app"))
ANY_IP: Entity = (("ip", None),)
QUOTAS: Quotas = {
    ALICE: {"consumer_byte_rate": 5.0, "producer_byte_rate": 1e6},
    ALICE_APP: {"producer_byte_rate": 7.0},
    ANY_IP: {"connection_creation_rate": 10.0},
}


def quotas(broker: FakeBroker, command: str, *arguments: str, input: str | None = None) -> Result:
    return CliRunner().invoke(
        main, ["quotas", command, "--bootstrap", broker.bootstrap, *arguments], input=input
    )


@pytest.fixture
def filled(broker: FakeBroker) -> FakeBroker:
    broker.quotas = {entity: dict(values) for entity, values in QUOTAS.items()}
    return broker


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """alice's producer_byte_rate changed, bob new; the rest is missing."""
    path = tmp_path / "quotas.yaml"
    path.write_text(
        "quotas:\n  clients:\n    - entity: {user: alice}\n      producer_byte_rate: 2\n"
        "    - entity: {user: bob}\n      producer_byte_rate: 3\n"
    )
    return path


DIFF = """\
- user alice: consumer_byte_rate 5
~ user alice: producer_byte_rate 1000000 -> 2
- user alice, client-id app: producer_byte_rate 7
+ user bob: producer_byte_rate 3
- ip <default>: connection_creation_rate 10
"""


def test_other_commands_do_not_pay_for_their_libraries() -> None:
    script = "import sys, proxy.cli.main; sys.exit(bool({'kio', 'aiokafka', 'rich'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_help_names_the_commands(broker: FakeBroker) -> None:
    shown = CliRunner().invoke(main, ["quotas", "--help"]).output
    for command in ("list", "get", "set", "delete", "import", "export", "diff", "log"):
        assert f"\n  {command} " in shown


# list and get


def test_list(filled: FakeBroker) -> None:
    lines = quotas(filled, "list").stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["user", "client-id", "ip", "connection_creation_rate", "consumer_byte_rate", "producer_byte_rate"],
        ["alice", "-", "-", "-", "5", "1000000"],
        ["alice", "app", "-", "-", "-", "7"],
        ["-", "-", "<default>", "10", "-", "-"],
    ]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--user", "alice"], {ALICE, ALICE_APP}),
        (["--user", "alice", "--client-id", "app"], {ALICE_APP}),
        (["--ip-default"], {ANY_IP}),
        (["--user-default"], set()),
    ],
)
def test_list_takes_filters(options: list[str], found: set[Entity], filled: FakeBroker) -> None:
    shown = json.loads(quotas(filled, "list", "--format", "json", *options).stdout)
    assert len(shown["quotas"]["clients"]) == len(found)
    parts = {(part.entity_type, part.match) for part in filled.describes[-1].components}
    assert all(parts <= set(entity) for entity in found)


def test_list_of_nothing(broker: FakeBroker) -> None:
    result = quotas(broker, "list")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no quotas\n")


def test_get_is_exact(filled: FakeBroker) -> None:
    result = quotas(filled, "get", "--user", "alice", "--format", "yaml")
    assert result.stdout == (
        "quotas:\n  clients:\n  - entity: {user: alice}\n"
        "    consumer_byte_rate: 5\n    producer_byte_rate: 1000000\n"
    )


def test_get_of_an_entity_that_has_none(filled: FakeBroker) -> None:
    result = quotas(filled, "get", "--client-id", "app")
    assert result.exit_code == 1
    assert result.stderr == "quota-proxy: client-id app has no quota of its own\n"


# set and delete


def test_set(filled: FakeBroker) -> None:
    result = quotas(filled, "set", "--user", "alice", "producer_byte_rate=1.5e3", "request_percentage=12.5")
    assert result.exit_code == 0
    assert filled.quotas[ALICE] == {
        "consumer_byte_rate": 5.0,
        "producer_byte_rate": 1500.0,
        "request_percentage": 12.5,
    }


def test_set_for_a_default(broker: FakeBroker) -> None:
    quotas(broker, "set", "--user-default", "--client-id", "app", "producer_byte_rate=1")
    assert broker.quotas == {(("user", None), ("client-id", "app")): {"producer_byte_rate": 1.0}}


def test_set_until_a_time(broker: FakeBroker) -> None:
    result = quotas(broker, "set", "--user", "bob", "producer_byte_rate=1", "--expires", "2126-12-01T00:00Z")
    assert result.exit_code == 0
    assert "until 2126-12-01T00:00:00Z" in result.stdout
    ops = {op.key: op.value for op in broker.alterations[0].entries[0].ops}
    assert ops == {"producer_byte_rate": 1.0, "expires_at_ms": 4_951_756_800_000.0}


def test_delete_until_a_time(filled: FakeBroker) -> None:
    result = quotas(
        filled, "delete", "--user", "alice", "producer_byte_rate", "--expires", "2126-12-01T00:00Z"
    )
    assert result.exit_code == 0
    assert result.stdout == "user alice: producer_byte_rate removed until 2126-12-01T00:00:00Z\n"
    ops = [(op.key, op.remove) for op in filled.alterations[0].entries[0].ops]
    assert ops == [("producer_byte_rate", True), ("expires_at_ms", False)]


def test_delete_of_what_is_temporary(filled: FakeBroker) -> None:
    result = quotas(filled, "delete", "--user", "alice", "--temporary")
    assert (result.exit_code, result.stdout) == (0, "user alice: temporary quotas removed\n")
    ops = [(op.key, op.remove) for op in filled.alterations[0].entries[0].ops]
    assert ops == [("expires_at_ms", True)]


def test_a_plain_broker_has_no_temporary_quotas(broker: FakeBroker) -> None:
    message = "Invalid configuration key expires_at_ms"
    broker.fault = lambda entity: (ErrorCode.invalid_request, message)
    result = quotas(broker, "set", "--user", "bob", "producer_byte_rate=1", "--for", "2h")
    assert result.exit_code == 1
    assert f"user bob: not altered: {message} (INVALID_REQUEST) (a plain Kafka broker has" in result.stderr


def test_dry_runs_change_nothing(filled: FakeBroker, file: Path) -> None:
    assert quotas(filled, "set", "--user", "bob", "producer_byte_rate=1", "--dry-run").exit_code == 0
    assert quotas(filled, "delete", "--user", "alice", "--dry-run").exit_code == 0
    result = quotas(filled, "import", str(file), "--prune", "--dry-run")
    assert (result.exit_code, result.stdout) == (0, DIFF)
    assert [request.validate_only for request in filled.alterations] == [True] * 3
    assert filled.quotas == QUOTAS


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        ([], None),
        (["producer_byte_rate"], {"consumer_byte_rate": 5.0}),
        (["producer_byte_rate", "consumer_byte_rate"], None),
    ],
)
def test_delete(arguments: list[str], left: dict[str, float] | None, filled: FakeBroker) -> None:
    assert quotas(filled, "delete", "--user", "alice", *arguments).exit_code == 0
    assert filled.quotas.get(ALICE) == left
    assert ALICE_APP in filled.quotas


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--user", "bob"], "user bob has no quota to remove; it has no quota of its own"),
        (
            ["--user", "alice", "x"],
            "user alice has no x to remove; it has consumer_byte_rate, producer_byte_rate",
        ),
    ],
)
def test_delete_of_what_is_not_there(arguments: list[str], problem: str, filled: FakeBroker) -> None:
    result = quotas(filled, "delete", *arguments)
    assert result.exit_code == 1
    assert result.stderr == f"quota-proxy: {problem}\n"
    assert not filled.alterations


def test_a_rejection_has_the_server_s_reason(filled: FakeBroker) -> None:
    filled.fault = lambda entity: (ErrorCode.cluster_authorization_failed, None)
    for arguments in (["set", "--user", "alice", "x=1"], ["delete", "--user", "alice"]):
        result = quotas(filled, *arguments)
        assert result.exit_code == 1
        assert result.stderr == "quota-proxy: user alice: not altered: CLUSTER_AUTHORIZATION_FAILED\n"
        assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["set", "producer_byte_rate=1"], "whose quota?"),
        (["set", "--user", "a"], "Missing argument"),
        (["set", "--user", "a", "producer_byte_rate"], "expected KEY=VALUE"),
        (["set", "--user", "a", "producer_byte_rate=fast"], "producer_byte_rate=fast: expected a number"),
        (["set", "--user", "a", "x=1", "x=2"], "given twice"),
        (["set", "--user", "a", "--user-default", "x=1"], "are two entities"),
        (["set", "--user", "", "x=1"], "--user takes a name; Kafka's default entity is --user-default"),
        (["set", "--client-id", "<default>", "x=1"], "Kafka's default entity is --client-id-default"),
        (["set", "--user", "a", "x=1", "--for", "soon"], "--for: expected a duration"),
        (
            ["set", "--user", "a", "x=1", "--expires", "2020-01-01T00:00Z"],
            "--expires: 2020-01-01T00:00Z is over",
        ),
        (["set", "--user", "a", "x=1", "--for", "1h", "--expires", "2126-01-01T00:00Z"], "say the same"),
        (["delete", "--user", "a", "--temporary", "x"], "leave out the keys"),
        (["list", "--bootstrap", "nowhere"], "expected HOST:PORT, got 'nowhere'"),
    ],
)
def test_usage(arguments: list[str], problem: str, broker: FakeBroker) -> None:
    result = quotas(broker, *arguments)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert not broker.alterations


def test_nobody_there() -> None:
    result = CliRunner().invoke(main, ["quotas", "list", "--bootstrap", "127.0.0.1:1"])
    hint = "is --bootstrap the proxy's bootstrap port, or a broker's?"
    said = f"quota-proxy: no server can be asked: 127.0.0.1:1: Connection refused; {hint}\n"
    assert (result.exit_code, result.stderr) == (1, said)


# export, import, diff


def test_export_then_diff(filled: FakeBroker, tmp_path: Path) -> None:
    file = tmp_path / "out.yaml"
    assert quotas(filled, "export", "--out", str(file)).exit_code == 0
    assert file.read_text() == quotas(filled, "export").stdout
    result = quotas(filled, "diff", str(file))
    assert (result.exit_code, result.output) == (0, "")


def test_export_to_where_it_cannot_be(filled: FakeBroker, tmp_path: Path) -> None:
    result = quotas(filled, "export", "--out", str(tmp_path / "missing" / "out.yaml"))
    assert result.exit_code == 1
    assert "cannot be written: No such file or directory" in result.stderr


def test_export_says_what_a_file_cannot_have(filled: FakeBroker) -> None:
    filled.quotas[("user", "<default>"),] = {"producer_byte_rate": 1.0}
    result = quotas(filled, "export")
    assert result.exit_code == 1
    assert 'user "<default>": left out' in result.stderr
    assert "<default>" not in result.stdout.replace("ip: <default>", "")


def test_diff(filled: FakeBroker, file: Path) -> None:
    result = quotas(filled, "diff", str(file))
    assert (result.exit_code, result.stdout) == (1, DIFF)
    assert result.stderr == "1 to add, 1 to change, 3 to remove\n"
    assert not filled.alterations


def test_diff_without_prune(filled: FakeBroker, file: Path) -> None:
    kept = "".join(line for line in DIFF.splitlines(keepends=True) if not line.startswith("-"))
    assert quotas(filled, "diff", str(file), "--no-prune").stdout == kept


def test_import(filled: FakeBroker, file: Path) -> None:
    result = quotas(filled, "import", str(file))
    assert (result.exit_code, result.output) == (0, "2 entities altered, 0 equal already, 0 rejected\n")
    assert filled.quotas == {
        **QUOTAS,
        ALICE: {"consumer_byte_rate": 5.0, "producer_byte_rate": 2.0},
        (("user", "bob"),): {"producer_byte_rate": 3.0},
    }


def test_import_sends_nothing_where_nothing_differs(filled: FakeBroker, file: Path) -> None:
    quotas(filled, "import", str(file))
    filled.alterations.clear()
    assert quotas(filled, "import", str(file)).output == "0 entities altered, 2 equal already, 0 rejected\n"
    assert not filled.alterations


def test_import_and_diff_leave_temporary_quotas_alone(filled: FakeBroker, file: Path) -> None:
    file.write_text(
        "quotas:\n  clients:\n"
        "    - {entity: {user: alice}, producer_byte_rate: 9, expires: 2126-12-01T00:00:00Z}\n"
    )
    note = f"{file}: 1 quotas with expires stay as they are; `quotas set --expires` sets temporary ones\n"
    result = quotas(filled, "diff", str(file))
    assert "user alice: producer_byte_rate" not in result.stdout
    assert result.stderr.startswith(note)
    assert note in quotas(filled, "import", str(file), "--prune", "--yes").stderr
    assert filled.quotas == {ALICE: {"producer_byte_rate": 1e6}}


@pytest.mark.parametrize(("options", "answer"), [(["--yes"], None), ([], "y\n")])
def test_import_with_prune(options: list[str], answer: str | None, filled: FakeBroker, file: Path) -> None:
    assert quotas(filled, "import", str(file), "--prune", *options, input=answer).exit_code == 0
    assert filled.quotas == {
        ALICE: {"producer_byte_rate": 2.0},
        (("user", "bob"),): {"producer_byte_rate": 3.0},
    }


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_prune_asks_first(answer: str, filled: FakeBroker, file: Path) -> None:
    result = quotas(filled, "import", str(file), "--prune", input=answer)
    assert result.exit_code == 1
    assert "Remove 3 quotas of 3 entities?" in result.stderr
    assert filled.quotas == QUOTAS


def test_import_goes_on_past_a_rejection(filled: FakeBroker, file: Path) -> None:
    filled.fault = lambda entity: (ErrorCode.invalid_request, "too small") if entity == ALICE else None
    result = quotas(filled, "import", str(file))
    assert result.exit_code == 1
    assert result.stderr == (
        "quota-proxy: user alice: not altered: too small (INVALID_REQUEST)\n"
        "1 entities altered, 0 equal already, 1 rejected\n"
    )
    assert (("user", "bob"),) in filled.quotas


@pytest.mark.parametrize("command", ["import", "diff"])
def test_a_file_that_is_wrong(command: str, filled: FakeBroker, file: Path) -> None:
    file.write_text(file.read_text() + "      consumer_byte_rate: fast\n")
    result = quotas(filled, command, str(file))
    assert result.exit_code == 2
    problem = "quotas.clients[1].consumer_byte_rate: expected a number, got 'fast'"
    assert result.stderr == f"quota-proxy: {file}:7: {problem}\n"
    assert not filled.alterations
