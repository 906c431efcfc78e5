"""Whom Kafka takes for whom by generated certificates' names; the proxy names nobody otherwise."""

from random import Random
from typing import Final

import pytest

from proxy.security.der import BadCertificate, read_name, read_values
from proxy.security.distinguished_name import spell
from proxy.security.mapping_rules import MappingRules, NoMatchingRule
from tests.support.kafka.tool_server import run_java
from tests.support.messages.certificate_names import name

pytestmark = pytest.mark.kafka
SEEDS: Final = 6000
RULES: Final = (
    "DEFAULT",
    "RULE:^CN=([^,]*).*$/$1/",
    "RULE:^CN=([^,]*),O=.*$/$1/,RULE:^.*OU=(.*?),.*$/$1/L,DEFAULT",
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,RULE:^(.*)$/x$1/U",
    "RULE:^.*?CN=(\\w+).*$/$1/L,DEFAULT",
)
REJECTED: Final = "REJECTED"


def proxys(der: bytes, rules: MappingRules) -> tuple[str, str]:
    """The name and the principal, or REJECTED in place of either."""
    try:
        (value,) = read_values(der)
        spelt = spell(read_name(value.content))
    except (ValueError, IndexError, BadCertificate):
        return REJECTED, REJECTED
    try:
        return spelt, rules.principal(spelt)
    except NoMatchingRule:
        return spelt, REJECTED


def kafkas(line: str) -> tuple[str, str]:
    texts = [bytes.fromhex(part[1:]).decode() if part[0] == "=" else part for part in line.split(" ")]
    return texts[0], texts[-1]


def test_nobody_is_taken_for_another() -> None:
    cases = [(name(Random(seed)), RULES[seed % len(RULES)]) for seed in range(SEEDS)]
    given = "".join(f"{der.hex()} {rules.encode().hex()}\n" for der, rules in cases)
    made = {rules: MappingRules(rules) for rules in RULES}
    found = [kafkas(line) for line in run_java("CertificateNames", given=given)]
    assert len(found) == len(cases)
    different = [
        (der.hex(), rules, kafkas_, proxys_)
        for (der, rules), kafkas_ in zip(cases, found, strict=True)
        if kafkas_[0] != REJECTED and (proxys_ := proxys(der, made[rules])) != kafkas_
    ]
    assert different == [], f"{len(different)} names, of which the first: {different[0]}"
    assert sum(principal != REJECTED for _, principal in found) > SEEDS / 4
