"""Options that the commands share: wrong usage is rejected before a request is sent."""

import pytest

from tests.unit.proxy.cli.quotas.commands_kit import quotas
from tests.unit.proxy.cli.quotas.fake_broker import FakeBroker


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["set", "producer_byte_rate=1"], "no entity"),
        (["set", "--user", "a"], "Missing argument"),
        (["set", "--user", "a", "producer_byte_rate"], "expected KEY=VALUE"),
        (["set", "--user", "a", "producer_byte_rate=fast"], "producer_byte_rate=fast: expected a number"),
        (["set", "--user", "a", "x=1", "x=2"], "occurs twice"),
        (["set", "--user", "a", "--user-default", "x=1"], "exclude each other"),
        (["set", "--user", "", "x=1"], "use --user-default"),
        (["set", "--client-id", "<default>", "x=1"], "use --client-id-default"),
        (["set", "--user", "a", "x=1", "--for", "soon"], "--for: expected a duration"),
        (
            ["set", "--user", "a", "x=1", "--expires", "2020-01-01T00:00Z"],
            "--expires: 2020-01-01T00:00Z",
        ),
        (
            ["set", "--user", "a", "x=1", "--for", "1h", "--expires", "2126-01-01T00:00Z"],
            "exclude each other",
        ),
        (["delete", "--user", "a", "--temporary", "x"], "omit the keys"),
        (["log", "--of-topic", ""], "use --of-topic-default"),
        (["log", "--of-broker", "one"], "--of-broker requires a broker's node id"),
        (["log", "--of-topic", "a", "--user", "b"], "--of-topic excludes"),
        (["list", "--bootstrap", "nowhere"], "expected HOST:PORT, got 'nowhere'"),
    ],
)
def test_wrong_usage_exits_2(arguments: list[str], problem: str, broker: FakeBroker) -> None:
    result = quotas(broker, *arguments)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert not broker.alterations
