"""The limit of open files is raised for the connections, or bounds them."""

import logging
import resource

import pytest

from proxy.server.system.descriptors import FILES_PER_CONNECTION, OTHER_FILES, allow_connections


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Soft and hard limit, in place of the process's own."""
    limits = [1024, 5000]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: limits.__setitem__(slice(None), new))
    return limits


def test_the_soft_limit_is_raised(limits: list[int], caplog: pytest.LogCaptureFixture) -> None:
    assert allow_connections(2000) == 2000
    assert limits == [FILES_PER_CONNECTION * 2000 + OTHER_FILES, 5000]
    assert caplog.messages == []


def test_enough_is_left_alone(limits: list[int]) -> None:
    assert allow_connections(100) == 100
    assert limits == [1024, 5000]


def test_without_a_hard_limit(limits: list[int], caplog: pytest.LogCaptureFixture) -> None:
    limits[1] = resource.RLIM_INFINITY
    assert allow_connections(20_000) == 20_000
    assert limits == [FILES_PER_CONNECTION * 20_000 + OTHER_FILES, resource.RLIM_INFINITY]
    assert caplog.messages == []


def test_a_hard_limit_that_is_too_low_bounds_the_connections(
    limits: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        connections = allow_connections(20_000)
    assert limits == [5000, 5000]
    assert FILES_PER_CONNECTION * connections + OTHER_FILES <= 5000
    [record] = caplog.records
    assert record.args == (5000, connections, 20_000, FILES_PER_CONNECTION * 20_000 + OTHER_FILES)


def test_one_connection_is_always_allowed(limits: list[int]) -> None:
    limits[:] = [64, 64]
    assert allow_connections(20_000) == 1
