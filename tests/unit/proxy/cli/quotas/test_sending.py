"""Rejected alterations are reported with the server's reason, and an interruption with what has been sent."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from kio.schema.errors import ErrorCode

from proxy.cli.quotas.changes import EntityAlteration
from proxy.cli.quotas.cluster.client import QuotaClient
from proxy.cli.quotas.cluster.config_client import ConfigClient
from proxy.cli.quotas.cluster.retries import RejectedAlteration
from proxy.cli.quotas.sending import send
from proxy.security.access import PLAINTEXT
from proxy.upstream.cluster_access import ClusterAccess
from tests.unit.proxy.cli.quotas.commands_kit import quotas
from tests.unit.proxy.cli.quotas.fake_broker import FakeBroker

NOWHERE = ClusterAccess((("127.0.0.1", 1),), 1.0, PLAINTEXT)


class StuckClient(QuotaClient):
    """Alters all entities but one, and then waits for a response that does not come."""

    def __init__(self) -> None:
        super().__init__(NOWHERE)
        self.stuck = asyncio.Event()

    async def alter(
        self, entries: Sequence[EntityAlteration], *, validate_only: bool = False
    ) -> AsyncIterator[tuple[int, list[RejectedAlteration]]]:
        yield len(entries) - 1, []
        self.stuck.set()
        await asyncio.Event().wait()


def test_rejection_shows_the_entity_and_the_servers_reason(filled: FakeBroker) -> None:
    filled.fault = lambda entity: (ErrorCode.cluster_authorization_failed, None)
    for arguments in (["set", "--user", "alice", "x=1"], ["delete", "--user", "alice"]):
        result = quotas(filled, *arguments)
        assert result.exit_code == 1
        assert result.stderr == "quota-proxy: user alice: not altered: CLUSTER_AUTHORIZATION_FAILED\n"
        assert result.stdout == ""


@pytest.mark.parametrize("validate_only", [False, True])
async def test_an_interruption_shows_how_many_entities_have_been_sent(
    validate_only: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    client = StuckClient()
    users = [EntityAlteration((("user", name),), {"producer_byte_rate": 1.0}) for name in "abc"]
    topic = EntityAlteration((("topic", "orders"),), {"producer.byte.rate": "1"})
    sending = asyncio.get_running_loop().create_task(
        send(client, ConfigClient(client, NOWHERE), [topic, *users], validate_only=validate_only)
    )
    await client.stuck.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert ("2 of 4 entities" in capsys.readouterr().err) != validate_only
