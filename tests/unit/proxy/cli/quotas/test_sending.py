"""Rejected alterations are reported with the server's reason."""

from kio.schema.errors import ErrorCode

from tests.unit.proxy.cli.quotas.commands_kit import quotas
from tests.unit.proxy.cli.quotas.fake_broker import FakeBroker


def test_rejection_shows_the_entity_and_the_servers_reason(filled: FakeBroker) -> None:
    filled.fault = lambda entity: (ErrorCode.cluster_authorization_failed, None)
    for arguments in (["set", "--user", "alice", "x=1"], ["delete", "--user", "alice"]):
        result = quotas(filled, *arguments)
        assert result.exit_code == 1
        assert result.stderr == "quota-proxy: user alice: not altered: CLUSTER_AUTHORIZATION_FAILED\n"
        assert result.stdout == ""
