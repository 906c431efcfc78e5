"""Quotas as a table."""

from proxy.cli.quotas.entity import Quotas
from proxy.cli.quotas.output import columns, quota_table


def test_table_has_a_column_for_each_type_and_quota() -> None:
    quotas: Quotas = {
        (("ip", None),): {"connection_creation_rate": 10.0},
        (("user", "a b"),): {"producer_byte_rate": 1e6, "request_percentage": 12.5},
    }
    assert quota_table(quotas) == [
        "user   ip         connection_creation_rate  producer_byte_rate  request_percentage",
        '"a b"  -          -                         1000000             12.5',
        "-      <default>  10                        -                   -",
    ]


def test_wide_characters_take_two_cells() -> None:
    assert columns(("name", "v"), [("日本", "1"), ("ab", "2")]) == ["name  v", "日本  1", "ab    2"]


def test_table_without_rows_is_the_head() -> None:
    assert columns(("a", "b"), []) == ["a  b"]
