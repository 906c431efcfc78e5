"""A quota may want requests handed out whole; whether it does can change at any moment."""

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.limits import Limits
from proxy.relay.traffic import Traffic
from proxy.wire.addresses import Addresses
from tests.support.messages.exchanges import opaque, responded
from tests.support.stories.playbook import START, Playbook, drive

MUTATED = Limits({QuotaEntity("another user", None): {"controller_mutation_rate": 1.0}})
NOBODY = Limits({})


@pytest.fixture
def engine():
    return QuotaEngine([kind.build() for kind in load_kinds()])


@pytest.fixture
def story(engine):
    return Playbook(drive(engine, Addresses(), Traffic(), client_address="::1", max_frame_bytes=1 << 20))


@pytest.mark.parametrize("api_key", [19, 20, 37])
def test_mutations_pass_as_they_are_while_nobody_has_such_a_quota(api_key, story):
    story.client(opaque(1, api_key)).to_broker(opaque(1, api_key))
    story.broker(responded(1)).to_client(responded(1)).idle()
    assert story.relay.take_intercepted() == []


@pytest.mark.parametrize("api_key", [19, 20, 37])
def test_mutations_are_handed_out_while_anybody_has_one(api_key, engine, story):
    engine.configure(MUTATED, START)
    story.client(opaque(1, api_key)).to_broker()
    [request] = story.relay.take_intercepted()
    assert request.header.api_key == api_key
    story.relay.answer(request.exchange, responded(1), START)
    story.to_client(responded(1)).idle()


def test_others_pass(engine, story):
    engine.configure(MUTATED, START)
    story.client(opaque(1, 36)).to_broker(opaque(1, 36))


def test_a_connection_that_is_there_already_notices_the_change(engine, story):
    story.client(opaque(1, 19)).to_broker(opaque(1, 19)).broker(responded(1)).to_client(responded(1))
    engine.configure(MUTATED, START)
    story.client(opaque(2, 19)).to_broker().own(responded(2)).to_client(responded(2))
    engine.configure(NOBODY, START)
    story.client(opaque(3, 19)).to_broker(opaque(3, 19))
