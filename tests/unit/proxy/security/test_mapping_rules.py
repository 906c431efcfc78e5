"""The expected results are those of the SslPrincipalMapper of Kafka 4.3.1."""

import pytest

from proxy.security.mapping_rules import MappingRules, NoMatchingRule

FIRST = "RULE:^CN=([^,]+),.*$/$1/,DEFAULT"
FOUR = "RULE:^cn=(.*?),ou=(.*?)$/$1@$2/,RULE:^CN=(.*?)$/$1@$2/,DEFAULT"
SIX = "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L"


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        ("DEFAULT", "CN=alice,OU=x,O=y,C=DE", "CN=alice,OU=x,O=y,C=DE"),
        (FIRST, "CN=alice,OU=x", "alice"),
        (FIRST, "CN=alice", "CN=alice"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=kafka,OU=ServiceUsers,O=Unknown", "kafka"),
        (SIX, "CN=AliceB,OU=Adm,O=Org,L=Ber,ST=B,C=DE", "aliceb@adm"),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U", "OU=x,CN=alice.b,O=y", "ALICE.B"),
        (FOUR, "CN=bob", "bob@$2"),
        ("RULE:^CN=(.*)$/x$12/", "CN=bob", "xbob2"),
        ("RULE:^CN=(.*)$/a$0b/", "CN=bob", "aCN=bobb"),
        (r"RULE:^CN=(.*)$/\$1/", "CN=bob", "$1"),
        (r"RULE:^CN=(.*)$/a\/b/", "CN=bob", "a/b"),
        (r"RULE:^CN=(.+)$/$1\\/", "CN=bob", "bob\\"),
        ("RULE:^CN=(.+)$/$1$03/", "CN=bob", "bobCN=bob3"),
        ("RULE:CN=[a-z]+/u/", "CN=bob", "u"),
        ("RULE:.*/u/", "CN=bob", "uu"),
        ("RULE:(?<who>CN=[a-z]*)/${who}!/", "CN=bob", "CN=bob!"),
        ("RULE:^CN=(.*)$/$1/L , DEFAULT", "CN=BOB", "bob"),
        ("RULE:^CN=(.*)/$1/,,DEFAULT", "OU=Bob", "OU=Bob"),
        ("DEFAULT,RULE:x/y/", "CN=bob", "CN=bob"),
        ("RULE:^CN=(.*)(x)?$/$1$2/", "CN=bob", "bob"),
    ],
)
def test_principal(rules: str, name: str, principal: str) -> None:
    assert MappingRules(rules).principal(name) == principal


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("RULE:^CN=([^,]+),.*$/$1/", "CN=alice"),
        (r"RULE:^CN=(\w+)$/$1/", "CN=müller"),
        ("RULE:^CN=(.+)$/$1$3$4/", "CN=bob"),
        ("RULE:^CN=(.+)$/$/", "CN=bob"),
    ],
)
def test_no_principal(rules: str, name: str) -> None:
    with pytest.raises(NoMatchingRule):
        MappingRules(rules).principal(name)


@pytest.mark.parametrize(
    "rules",
    [
        "RULE:^CN=(.*)$/$1/LU",
        "RULE:^CN=(.*)$/$1/X",
        "RULE:^CN=(.*)$/$1",
        "RULE:(/$1/",
        "DEFAULTX",
        "default",
        "  ",
    ],
)
def test_rejected(rules: str) -> None:
    with pytest.raises(ValueError, match=r"rule|expression"):
        MappingRules(rules)


@pytest.mark.parametrize("terminator", ["\n", "\r", "\u0085", "\u2028", "\u2029"])
def test_a_dot_matches_no_line_terminator(terminator: str) -> None:
    rules = MappingRules(r"RULE:^CN=(.*?),.*$/$1/,DEFAULT")
    name = f"CN=alice,O=x{terminator}"
    assert rules.principal(name) == name
    assert MappingRules(r"RULE:(?s)^CN=(.*?),.*$/$1/").principal(name) == "alice"


@pytest.mark.parametrize(
    ("pattern", "name", "principal"),
    [
        (r"CN=a\.b", "CN=a.b", "match"),
        (r"CN=a\.b", "CN=axb", "none"),
        (r"CN=[.]", "CN=.", "match"),
        (r"CN=[.]", "CN=x", "none"),
        (r"CN=[^.]", "CN=\n", "match"),
        (r"CN=[]\].]", "CN=.", "match"),
        (r"CN=\[.", "CN=[x", "match"),
        (r"CN=(?<name>.)", "CN=x", "match"),
    ],
)
def test_what_is_a_dot(pattern: str, name: str, principal: str) -> None:
    assert MappingRules(f"RULE:^{pattern}$/match/,RULE:(?s)^.*$/none/").principal(name) == principal
