import pytest

from proxy.wire.registry import BY_KEY, KNOWN
from tests.support.messages.kio_messages import request_type, response_type, versions

READ = [api for api in BY_KEY if api is not None]
ALL = [api for api in KNOWN if api is not None]


def names(api):
    return api.name


def test_the_apis_that_are_read():
    assert {api.key: api.name for api in READ} == {
        0: "Produce",
        1: "Fetch",
        3: "Metadata",
        10: "FindCoordinator",
        18: "ApiVersions",
        60: "DescribeCluster",
        78: "ShareFetch",
        79: "ShareAcknowledge",
    }


def test_the_apis_that_are_answered_or_watched():
    assert {api.key: api.name for api in ALL if api not in READ} == {
        17: "SaslHandshake",
        19: "CreateTopics",
        20: "DeleteTopics",
        32: "DescribeConfigs",
        33: "AlterConfigs",
        36: "SaslAuthenticate",
        37: "CreatePartitions",
        44: "IncrementalAlterConfigs",
        48: "DescribeClientQuotas",
        49: "AlterClientQuotas",
    }


def test_every_api_is_at_its_key():
    assert all(BY_KEY[api.key] is api for api in READ)
    assert all(KNOWN[api.key] is api for api in ALL)
    assert set(READ) < set(ALL)


@pytest.mark.parametrize("api", ALL, ids=names)
def test_the_newest_version_that_kio_knows_is_read(api):
    """A newer kio that knows more fails here: every client loses a version that is not known here."""
    newest = versions(api.key)[-1]
    assert api.newest >= newest, f"{api.name} is read up to v{api.newest}; kio knows v{newest}"


@pytest.mark.parametrize("api", ALL, ids=names)
def test_the_oldest_version_that_kio_knows_is_read(api):
    assert 0 <= api.oldest <= versions(api.key)[0]


@pytest.mark.parametrize("api", ALL, ids=names)
def test_flexible_versions_are_kafkas(api):
    for version in versions(api.key):
        flexible = version >= api.flexible_from
        assert request_type(api.key, version).__flexible__ is flexible
        assert response_type(api.key, version).__flexible__ is flexible
        header = response_type(api.key, version).__header_schema__
        assert api.flexible_response_header(version) is header.__flexible__


@pytest.mark.parametrize("api", ALL, ids=names)
def test_apis_are_called_as_kafka_calls_them(api):
    assert request_type(api.key, versions(api.key)[0]).__name__ == f"{api.name}Request"
