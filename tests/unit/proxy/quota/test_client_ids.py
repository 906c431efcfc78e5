"""Long client ids are represented by a digest, of requests and of quotas alike."""

from hashlib import sha256

import pytest

from proxy.quota.client_ids import MAX_BYTES, configured, represented

LONG = "a" * 30_000


@pytest.mark.parametrize("client_id", ["", "c", "a" * MAX_BYTES, "ü" * (MAX_BYTES // 2), "\U0001f600" * 63])
def test_a_client_id_of_usual_length_is_kept(client_id: str) -> None:
    assert represented(client_id) == configured(client_id) == client_id


@pytest.mark.parametrize("client_id", ["a" * (MAX_BYTES + 1), LONG, "ü" * 128, "a" + "\U0001f600" * 64])
def test_a_long_one_is_represented_by_its_beginning_and_a_digest(client_id: str) -> None:
    short = represented(client_id)
    first, digest = short.split("~sha256:")
    assert client_id.startswith(first)
    assert 196 < len(first.encode()) <= 200
    assert digest == sha256(client_id.encode()).hexdigest()
    assert configured(client_id) == short


def test_long_ones_that_begin_alike_differ() -> None:
    assert represented(LONG + "1") != represented(LONG + "2")


def test_no_client_can_send_what_represents_another() -> None:
    """It is itself too long to be kept."""
    short = represented(LONG)
    assert len(short.encode()) > MAX_BYTES
    assert represented(short) != short


def test_a_quota_may_name_a_client_as_metrics_show_it() -> None:
    assert configured(represented(LONG)) == represented(LONG)
    assert configured(represented("ü" * 300)) == represented("ü" * 300)


@pytest.mark.parametrize(
    "client_id",
    [
        "x" * 200 + "~sha256:" + "g" * 64,
        "x" * 200 + "~sha257:" + "0" * 64,
        "x" * 9_000 + "~sha256:" + "0" * 64,
    ],
)
def test_what_only_looks_like_it_is_a_client_id(client_id: str) -> None:
    assert configured(client_id) == represented(client_id) != client_id
