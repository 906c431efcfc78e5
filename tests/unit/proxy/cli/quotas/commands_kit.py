"""Quotas of a broker, and running a command against it."""

from click.testing import CliRunner, Result

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
