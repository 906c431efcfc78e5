"""AuthorizerWatch on a broker that responds to DescribeAcls; test_security.py has real authorizers."""

from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

import pytest
from kio.schema.errors import ErrorCode

from proxy.admin import authorizer
from proxy.admin.authority import Authority
from proxy.admin.authorizer import AuthorizerWatch
from proxy.security.settings import Changes
from proxy.tasks import Tasks
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.refresh import ClusterRefresh
from proxy.wire.api_keys import METADATA
from tests.support.messages.kio_messages import response_type
from tests.support.messages.mutations import NO_TIME
from tests.support.messages.requests import build
from tests.support.process.metadata_broker import MetadataBroker
from tests.support.waiting import reached

DESCRIBE_ACLS = 29
MISSING, PRESENT = ErrorCode.security_disabled, ErrorCode.cluster_authorization_failed
Watch = Callable[..., AuthorizerWatch]


class AclBroker(MetadataBroker):
    """Responds to DescribeAcls with an error code; None: it closes the connection."""

    newest: ClassVar = {METADATA: 12, DESCRIBE_ACLS: 3}

    def __init__(self) -> None:
        super().__init__()
        self.code: ErrorCode | None = MISSING
        self.acl_requests = 0

    async def respond(self, request: Any) -> Any:
        if request.__api_key__ == METADATA:
            return await super().respond(request)
        self.acl_requests += 1
        if self.code is None:
            raise ConnectionError
        schema = response_type(DESCRIBE_ACLS, request.__version__)
        return build(schema, throttle_time=NO_TIME, error_code=self.code, error_message=None, resources=())


@pytest.fixture
async def broker(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AclBroker]:
    """Asked often."""
    monkeypatch.setattr(authorizer, "ASK_EVERY_SECONDS", 0.02)
    monkeypatch.setattr(authorizer, "RETRY_SECONDS", 0.02)
    async with AclBroker() as broker:
        yield broker


@pytest.fixture
async def watch(broker: AclBroker) -> AsyncIterator[Watch]:
    """Starts to watch the broker's cluster, until the end of the test."""
    tasks = Tasks()
    cluster = ClusterRefresh("clients", ClusterAccess((broker.address,), 5.0), lambda view: None)
    tasks.start(cluster.run())

    def start(**settings: Any) -> AuthorizerWatch:
        made = AuthorizerWatch("clients", cluster, Authority(Changes(**settings)))
        tasks.start(made.run())
        return made

    yield start
    await tasks.cancel()
    cluster.close()


async def asked_again(broker: AclBroker) -> None:
    """Wait for the second request from here on: the response to the first has been processed."""
    before = broker.acl_requests
    await reached(lambda: broker.acl_requests >= before + 2, "two requests")


async def test_a_cluster_without_an_authorizer_is_a_warning(
    broker: AclBroker, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    watched = watch()
    assert watched.warning == "", "the cluster has not responded yet"
    await asked_again(broker)
    assert "quotas.changes.without_authorizer" in watched.warning
    await asked_again(broker)
    assert [record.message for record in caplog.records if record.name == authorizer.__name__] == [
        watched.warning
    ]


async def test_a_configured_list_of_those_who_may_change_quotas_is_no_warning(
    broker: AclBroker, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    watched = watch(without_authorizer=[])
    await asked_again(broker)
    assert watched.warning == ""
    assert [record for record in caplog.records if record.name == authorizer.__name__] == []


async def test_the_warning_follows_the_cluster(
    broker: AclBroker, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    """An authorizer is added and removed; it is logged each time that it is found missing."""
    broker.code = PRESENT
    watched = watch()
    await asked_again(broker)
    assert watched.warning == ""
    for code in (MISSING, PRESENT, MISSING):
        broker.code = code
        await asked_again(broker)
        assert bool(watched.warning) == (code == MISSING)
    assert len([record for record in caplog.records if record.name == authorizer.__name__]) == 2


async def test_a_broker_that_fails_is_asked_again(broker: AclBroker, watch: Watch) -> None:
    broker.code = None
    watched = watch()
    await asked_again(broker)
    assert watched.warning == ""
    broker.code = MISSING
    await asked_again(broker)
    assert watched.warning
    broker.code = None
    await asked_again(broker)
    assert watched.warning, "the last response counts"
