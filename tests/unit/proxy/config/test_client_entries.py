"""The entries of clients: other entries have another fingerprint, and settings can do without entries."""

import pytest

from proxy.config.client_entries import fingerprint, without_entries
from proxy.config.quotas import Quotas
from proxy.config.settings import Settings

ENTRIES = tuple({"entity": {"user": f"u{number}"}, "producer_byte_rate": number} for number in range(1, 1200))


@pytest.mark.parametrize(
    "other",
    [
        (),
        ENTRIES[1:],
        ENTRIES[:-1],
        (*ENTRIES[:-1], {"entity": {"user": "u1199"}, "producer_byte_rate": 1}),
        (*ENTRIES[:-1], {"entity": {"user": "u1199"}, "producer_byte_rate": 10**30}),
        (*ENTRIES[:-1], {"entity": {"user": "u1199"}, "producer_byte_rate": 10**30 + 1}),
    ],
)
def test_other_entries_have_another_fingerprint(other: tuple[dict[str, object], ...]) -> None:
    same = tuple(dict(entry) for entry in ENTRIES)
    assert fingerprint(same) == fingerprint(ENTRIES)
    assert fingerprint(other) == fingerprint(list(other))
    assert fingerprint(other) != fingerprint(ENTRIES)


def test_numbers_of_any_size_have_a_fingerprint() -> None:
    prints = {fingerprint([{"controller_mutation_rate": 10**30 + more}]) for more in range(3)}
    assert len(prints) == 3


def test_settings_without_entries_are_the_same_but_for_these() -> None:
    settings = Settings(listeners=(), quotas=Quotas(burst_seconds=7.0, clients=ENTRIES))
    bare = without_entries(settings)
    assert bare.quotas.clients == ()
    assert bare == Settings(listeners=(), quotas=Quotas(burst_seconds=7.0))
    assert settings.quotas.clients == ENTRIES
