"""Names in DER and as the X500Principal of Java 17 spells them; its responses are these."""

import pytest

from proxy.security.der import read_name, read_values
from proxy.security.distinguished_name import spell
from tests.support.messages.certificate_names import (
    BMP,
    IA5,
    NUMERIC,
    PRINTABLE,
    SEQUENCE,
    SET,
    T61,
    UNIVERSAL,
    UTF8,
    attribute,
    der,
)

Part = tuple[str, int, bytes]


def named(*rdns: list[Part]) -> str:
    sets = [der(SET, b"".join(attribute(*each) for each in parts)) for parts in rdns]
    (name,) = read_values(der(SEQUENCE, b"".join(sets)))
    return spell(read_name(name.content))


def common(text: str) -> str:
    return named([("CN", UTF8, text.encode())])


def test_the_last_comes_first() -> None:
    rdns: list[list[Part]] = [[("C", PRINTABLE, b"DE")], [("O", UTF8, b"Org")], [("CN", UTF8, b"alice")]]
    assert named(*rdns) == "CN=alice,O=Org,C=DE"


def test_keywords_of_the_rfc() -> None:
    kinds = ["CN", "L", "ST", "STREET", "OU", "DC", "UID"]
    rdns: list[list[Part]] = [[(kind, UTF8, b"x")] for kind in reversed(kinds)]
    assert named(*rdns) == "CN=x,L=x,ST=x,STREET=x,OU=x,DC=x,UID=x"


def test_an_email_address_and_other_types_are_hexadecimal() -> None:
    assert named([("CN", UTF8, b"alice")], [("EMAIL", IA5, b"a@b.c")]) == (
        "1.2.840.113549.1.9.1=#16056140622e63,CN=alice"
    )
    assert named([("SERIAL", PRINTABLE, b"serial7")], [("TITLE", UTF8, b"title")]) == (
        "2.5.4.12=#0c057469746c65,2.5.4.5=#130773657269616c37"
    )


def test_several_in_one_keep_their_order() -> None:
    pair: list[Part] = [("OU", UTF8, b"y"), ("CN", UTF8, b"x")]
    assert named(pair, [("O", UTF8, b"z")]) == "O=z,OU=y+CN=x"


@pytest.mark.parametrize(
    ("value", "spelt"),
    [
        ('a,b+c"d\\e<f>g;h=i#j', r"a\,b\+c\"d\\e\<f\>g\;h\=i\#j"),
        (" lead and trail ", r"\ lead and trail\ "),
        ("#start", r"\#start"),
        (" ,x, ", r"\ \,x\,\ "),
        ("  ", r"\ \ "),
        ("\r a\r", "\\\r\\ a\\\r"),
        ("a\0b", r"a\00b"),
        ("müller 李", "müller 李"),
        ("", ""),
    ],
)
def test_what_is_escaped(value: str, spelt: str) -> None:
    assert common(value) == f"CN={spelt}"


def test_kinds_of_strings() -> None:
    assert named([("CN", NUMERIC, b"12345")]) == "CN=#12053132333435"
    assert named([("CN", UNIVERSAL, "uni".encode("utf-32-be"))]) == "CN=#1c0c000000750000006e00000069"
    assert named([("CN", T61, b"t61 \xfc")]) == "CN=t61 \ufffd"
    assert named([("CN", BMP, b"\0b\0m")]) == r"CN=\00b\00m"
    assert named([("CN", UTF8, b"bad\xff")]) == "CN=bad\ufffd"
    # Two names that are not ASCII are two names, of whatever type.
    assert named([("CN", PRINTABLE, "m\u00fc".encode())]) == "CN=m\u00fc"
    assert named([("CN", IA5, "m\u00f6".encode())]) == "CN=m\u00f6"


def test_a_surrogate_is_one_character() -> None:
    assert named([("CN", UTF8, b"a\xed\xa0\x80b\xed\xb0")]) == "CN=a\ufffdb\ufffd"
    assert named([("CN", UTF8, b"a\xed\xa0b\xed\x9f\xbf")]) == "CN=a\ufffdb\ud7ff"


def test_no_name() -> None:
    assert named() == ""
