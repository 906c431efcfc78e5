import pytest

from proxy.wire.api_keys import DESCRIBE_CONFIGS, FETCH, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE
from proxy.wire.apis.api import Api
from proxy.wire.apis.intercepted import InterceptedApi
from proxy.wire.apis.registry import ApiTable
from tests.support.messages.kio_messages import request_type, response_type, versions

INTERCEPTED = InterceptedApi(DESCRIBE_CONFIGS, newest=4, flexible_from=4)
TABLE = ApiTable([INTERCEPTED])
READ = [api for api in TABLE.read if api is not None]
KNOWN = [api for api in TABLE.known if api is not None]
WIRE = [api for api in KNOWN if api is not INTERCEPTED]


def names(api: Api) -> str:
    return api.name


def test_the_apis_that_are_read() -> None:
    assert {api.key: api.name for api in READ} == {
        0: "Produce",
        1: "Fetch",
        3: "Metadata",
        10: "FindCoordinator",
        18: "ApiVersions",
        55: "DescribeQuorum",
        60: "DescribeCluster",
        78: "ShareFetch",
        79: "ShareAcknowledge",
    }


def test_the_apis_that_are_known_and_not_read() -> None:
    assert [api.key for api in KNOWN if api not in READ] == [
        SASL_HANDSHAKE,
        DESCRIBE_CONFIGS,
        SASL_AUTHENTICATE,
    ]


def test_between_brokers_produce_and_fetch_are_read() -> None:
    assert [api.key for api in TABLE.read_between_brokers if api is not None] == [PRODUCE, FETCH]


def test_every_api_is_at_its_key() -> None:
    assert all(TABLE.read[api.key] is api for api in READ)
    assert all(TABLE.known[api.key] is api for api in KNOWN)
    assert set(READ) < set(KNOWN)


@pytest.mark.parametrize("api", WIRE, ids=names)
def test_the_newest_version_that_kio_knows_is_read(api: Api) -> None:
    """A newer kio that knows more fails here: every client loses a version that is not known here."""
    newest = versions(api.key)[-1]
    assert api.newest >= newest, f"{api.name} is read up to v{api.newest}; kio knows v{newest}"


@pytest.mark.parametrize("api", WIRE, ids=names)
def test_the_oldest_version_that_kio_knows_is_read(api: Api) -> None:
    assert 0 <= api.oldest <= versions(api.key)[0]


@pytest.mark.parametrize("api", WIRE, ids=names)
def test_flexible_versions_are_kafkas(api: Api) -> None:
    for version in versions(api.key):
        flexible = version >= api.flexible_from
        assert request_type(api.key, version).__flexible__ is flexible
        assert response_type(api.key, version).__flexible__ is flexible
        header = response_type(api.key, version).__header_schema__
        assert api.flexible_response_header(version) is header.__flexible__
