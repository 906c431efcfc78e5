import pytest

from proxy.wire.api_keys import DESCRIBE_CONFIGS
from proxy.wire.apis.intercepted import InterceptedApi
from proxy.wire.errors import UnsupportedVersion

API = InterceptedApi(DESCRIBE_CONFIGS, newest=4, flexible_from=2)


def test_versions_from_0_on_are_supported() -> None:
    assert (API.key, API.name, API.oldest, API.newest) == (32, "DescribeConfigs", 0, 4)
    for version in range(5):
        API.check_version(version)


def test_a_newer_version_is_rejected() -> None:
    with pytest.raises(UnsupportedVersion, match="DescribeConfigs v5"):
        API.check_version(5)


def test_the_response_header_is_flexible_with_the_body() -> None:
    assert [API.flexible_response_header(version) for version in range(5)] == [False] * 2 + [True] * 3
