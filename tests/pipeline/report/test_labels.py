"""Labels: no two tenants have the same one, and a page shows it as it is."""

from itertools import product

import pytest

from pipeline.report.labels import bucket_label, tenant_label

NAMES = [
    *("", "a", "b", "a / b", "b / a", "/", "/ a", "a /", " a", "a ", "a  b", "a b"),
    *(
        '"a"',
        '"',
        "\\",
        '"a" / "b"',
        "no user",
        "no client id",
        "no cluster",
        "any user",
        "a\tb",
        "a\nb",
        "a\\nb",
    ),
    *("a\u00a0b", "a\u202eb", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")),
]


@pytest.mark.parametrize("cluster", [False, True])
def test_different_tenants_have_different_labels(cluster: bool) -> None:
    tenants = list(product(NAMES, NAMES, NAMES if cluster else [None]))
    labels = [tenant_label(user, client_id, place) for user, client_id, place in tenants]
    assert len(set(labels)) == len(tenants)
    assert not [label for label in labels if label != " ".join(label.split()) and '"' not in label]
    assert all(label.isprintable() for label in labels)


@pytest.mark.parametrize(
    ("names", "label"),
    [
        (("alice", "team/app"), "alice / team/app"),
        (("CN=alice, O=Example", ""), "CN=alice, O=Example / no client id"),
        (("alice", "a / b"), 'alice / "a / b"'),
        (("alice", 'a\n"b"'), 'alice / "a\\n\\"b\\""'),
        (("alice", "billing", "east"), "east / alice / billing"),
    ],
)
def test_a_label_is_the_names(names: tuple[str, ...], label: str) -> None:
    assert tenant_label(*names) == label


def test_all_share_the_empty_part_of_a_bucket() -> None:
    assert bucket_label("alice", "") == "alice / any client id"
    assert bucket_label("", "a", "east") == "east / any user / a"
