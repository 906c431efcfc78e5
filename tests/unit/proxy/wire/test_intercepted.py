import pytest

from proxy.wire.intercepted import ANSWERED
from proxy.wire.registry import BY_KEY, KNOWN
from tests.support.messages.kio_messages import request_type, response_type, versions


def names(api):
    return api.name


@pytest.mark.parametrize("api", ANSWERED, ids=names)
def test_every_version_that_kio_knows_is_answered(api):
    """A newer kio that knows more fails here: until it is answered, no client is offered it."""
    known = versions(api.key)
    assert api.oldest == 0
    assert api.newest == known[-1], f"{api.name} is answered up to v{api.newest}; kio knows v{known[-1]}"


@pytest.mark.parametrize("api", ANSWERED, ids=names)
def test_names_and_flexible_versions_are_kafkas(api):
    for version in versions(api.key):
        request = request_type(api.key, version)
        assert request.__name__ == f"{api.name}Request"
        assert request.__flexible__ is (version >= api.flexible_from)
        header = response_type(api.key, version).__header_schema__
        assert api.flexible_response_header(version) is header.__flexible__


@pytest.mark.parametrize("api", ANSWERED, ids=names)
def test_it_is_known_and_not_read(api):
    """Whether it is answered or goes on to the broker is settled request by request."""
    assert KNOWN[api.key] is api
    assert BY_KEY[api.key] is None
