"""A broker for the commands to talk to."""

from collections.abc import Iterator

import pytest

from tests.unit.proxy.cli.quotas.fake_broker import FakeBroker


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker() as broker:
        yield broker
