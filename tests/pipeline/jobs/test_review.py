"""The review: changes as `quota-proxy quotas diff` shows them, and every other line is a comment."""

from typing import Any, Final

from pipeline.cluster.quotas import changes_to
from pipeline.jobs.review import Effect, Review, review_text
from pipeline.transforms.recommend import Skipped
from pipeline.window import Window
from proxy.quota.identity import DEFAULT, QuotaEntity

IN: Final = "producer_byte_rate"
WEEK: Final = Window(1_767_139_200_000, 1_767_744_000_000)
HOSTILE: Final = "x\n- user alice: producer_byte_rate 1"


def effect(**values: Any) -> Effect:
    base = Effect("local", "alice", "a", IN, 60_000, 0, 0, 0, 0)
    return base._replace(**values)


def text(**values: Any) -> str:
    empty: dict[str, Any] = {"compared": "", "changes": [], "effects": [], "period": WEEK, "skipped": []}
    return review_text(Review(**{**empty, **values}))


def test_changes_are_a_diff() -> None:
    have = {
        QuotaEntity("alice", "a"): {IN: 1024.0, "request_percentage": 5.0},
        QuotaEntity(DEFAULT, None): {IN: 9.0},
        QuotaEntity("bob", None): {IN: 2048.0},
    }
    want = {
        QuotaEntity("alice", "a"): {IN: 2048.0},
        QuotaEntity("bob", None): {IN: 2048.0},
        QuotaEntity("c,d", '"'): {IN: 4096.0},
    }
    found = text(changes=changes_to(have, want), compared="quotas.yaml").splitlines()
    assert [line for line in found if not line.startswith("#")] == [
        "~ user alice, client-id a: producer_byte_rate 1024 -> 2048",
        '+ user "c,d", client-id "\\"": producer_byte_rate 4096',
    ]
    assert "quotas.yaml: 1 to add, 1 to change, 0 to remove" in found[0]


def test_effects_are_sorted_by_their_size() -> None:
    lines = text(
        effects=[
            effect(before_throttle_ms=1000, after_throttle_ms=1000),
            effect(user="bob", before_throttle_ms=0, after_throttle_ms=200_000, after_late_ms=5000),
            effect(before_rejected_bytes=2048),
            effect(user="carol", quota="request_percentage", after_throttle_ms=None),
        ]
    ).splitlines()
    start = lines.index("# With them, from 2025-12-31 00:00 to 2026-01-07 00:00, UTC (replay/ has all):")
    assert lines[start + 1 : start + 6] == [
        "#   throttled longer: 1, shorter: 1, as long: 1",
        "#   user bob, client-id a: producer_byte_rate: throttled 0 ms -> 3 min 20 s, late by up to 5 s",
        "#   user alice, client-id a: producer_byte_rate: throttled 1 min -> 0 ms, rejected 2 KiB -> 0 B",
        "#   user alice, client-id a: producer_byte_rate: throttled 1 s -> 1 s",
        "#   not replayed: request_percentage",
    ]


def test_without_effects_it_says_so() -> None:
    assert "no quota throttles or rejects anything" in text()
    assert "? to ?" in text(period=Window())
    unknown = text(effects=[effect(after_throttle_ms=None, quota=None)])
    assert "no quota throttles" not in unknown
    assert "not replayed: unknown" in unknown


def test_long_lists_end() -> None:
    many = [effect(user=f"u{place}") for place in range(25)]
    skipped = [Skipped(f"u{place}", "", IN, 1, 1.0, "why") for place in range(30)]
    found = text(effects=many, skipped=skipped)
    assert "#   and 5 more\n" in found
    assert "#   and 10 more\n" in found
    assert found.count(": why") == 20


def test_names_cannot_forge_a_change() -> None:
    """Nor with the line ends of other alphabets."""
    names = [HOSTILE, HOSTILE.replace("\n", "\u2028"), HOSTILE.replace("\n", "\r")]
    found = text(
        effects=[
            effect(user=name, client_id=name, quota=name, cluster=str(place))
            for place, name in enumerate(names)
        ],
        skipped=[Skipped(name, name, IN, 1, 1.0, "why") for name in names],
    )
    assert all(line.startswith("#") for line in found.splitlines())
