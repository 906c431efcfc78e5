"""The code that tests.broken_rules breaks is there."""

import pytest

from tests.broken_rules import ROOT, RULES, Rule


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule)
def test_the_code_of_a_rule_is_in_one_place(rule: Rule) -> None:
    assert (ROOT / rule.file).read_text().count(rule.code) == 1
    assert (ROOT / rule.tests).exists()
