"""A broker for the commands, empty or with quotas."""

from collections.abc import Iterator

import pytest

from tests.unit.proxy.cli.quotas.commands_kit import QUOTAS
from tests.unit.proxy.cli.quotas.fake_broker import FakeBroker


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker() as broker:
        yield broker


@pytest.fixture
def filled(broker: FakeBroker) -> FakeBroker:
    broker.quotas = {entity: dict(values) for entity, values in QUOTAS.items()}
    return broker
