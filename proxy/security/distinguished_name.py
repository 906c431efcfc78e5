"""A distinguished name as text, as Java's X500Principal.getName() formats it.

Brokers derive principals from that text, and operators write ssl.principal.mapping.rules for it. The format
is RFC 2253: the last relative distinguished name comes first. Types without a keyword in the RFC appear as
their object identifier, with the value's DER in hexadecimal: an e-mail address is
`1.2.840.113549.1.9.1=#16…`. Beyond the RFC, Java escapes `=` and `#` at any position.
"""

import re
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
STRINGS: Final = frozenset([0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E])
"""The types that Java shows as text, by tag: UTF8String, PrintableString, T61String, IA5String, GeneralString
and BMPString. It decodes all of them as UTF-8, even BMPString, which is UTF-16.
"""
_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT: Final = "\ufffd".encode()
ESCAPED: Final = frozenset(',=+<>#;"\\')


def spell(name: Name) -> str:
    """The name as text; empty if the certificate has no subject."""
    return ",".join("+".join(map(_spell_attribute, parts)) for parts in reversed(name))


def _spell_attribute(attribute: Attribute) -> str:
    keyword = KEYWORDS.get(attribute.type)
    if keyword is None or attribute.value.tag not in STRINGS:
        return f"{keyword or attribute.type}=#{attribute.value.encoded.hex()}"
    return f"{keyword}={_escape(_text(attribute.value))}"


def _text(value: Value) -> str:
    """Decode a string. Java replaces an encoded surrogate by one character, Python each of its bytes."""
    return _SURROGATE.sub(_REPLACEMENT, value.content).decode(errors="replace")


def _escape(text: str) -> str:
    escaped = "".join(f"\\{c}" if c in ESCAPED else "\\00" if c == "\0" else c for c in text)
    start = len(escaped) - len(escaped.lstrip(" \r"))
    end = len(escaped.rstrip(" \r"))
    return "".join(f"\\{c}" if place < start or place >= end else c for place, c in enumerate(escaped))
