"""A distinguished name as text, as Java's X500Principal.getName() formats it.

Brokers derive principals from that text, and operators write ssl.principal.mapping.rules for it. The format
is RFC 2253: the last relative distinguished name comes first. Types without a keyword in the RFC appear as
their object identifier, with the value's DER in hexadecimal: an e-mail address is
`1.2.840.113549.1.9.1=#16…`. Beyond the RFC, Java escapes `=` and `#` at any position.
"""

from typing import Final

from proxy.security.der import Attribute, Name, Value

KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
CHARSETS: Final = {
    0x0C: "utf-8",  # UTF8String
    0x13: "ascii",  # PrintableString
    0x14: "utf-8",  # T61String
    0x16: "ascii",  # IA5String
    0x1B: "ascii",  # GeneralString
    0x1E: "utf-8",  # BMPString: UTF-16, but Java decodes it as UTF-8
}
"""How Java decodes the string types that it shows as text, by tag."""
ESCAPED: Final = frozenset(',=+<>#;"\\')


def spell(name: Name) -> str:
    """The name as text; empty if the certificate has no subject."""
    return ",".join("+".join(map(_spell_attribute, parts)) for parts in reversed(name))


def _spell_attribute(attribute: Attribute) -> str:
    keyword = KEYWORDS.get(attribute.type)
    charset = CHARSETS.get(attribute.value.tag)
    if keyword is None or charset is None:
        return f"{keyword or attribute.type}=#{attribute.value.encoded.hex()}"
    return f"{keyword}={_escape(_text(attribute.value, charset))}"


def _text(value: Value, charset: str) -> str:
    return value.content.decode(charset, errors="replace")


def _escape(text: str) -> str:
    escaped = "".join(f"\\{c}" if c in ESCAPED else "\\00" if c == "\0" else c for c in text)
    start = len(escaped) - len(escaped.lstrip(" \r"))
    end = len(escaped.rstrip(" \r"))
    return "".join(f"\\{c}" if place < start or place >= end else c for place, c in enumerate(escaped))
