"""Kafka's ssl.principal.mapping.rules (KIP-371): from a certificate's distinguished name to a principal.

Rules are separated by commas. The first rule that applies determines the principal:

    DEFAULT                            the distinguished name
    RULE:PATTERN/REPLACEMENT/[LU]      PATTERN has to match the whole name; its match is replaced, and the
                                       result is converted to lower (L) or upper case (U)

Syntax and results are Kafka's, including those of unusual replacements. PATTERN is a Java regular expression,
as far as Python supports its syntax.
"""

import re
from dataclasses import dataclass
from typing import Final

_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(?:.*?)"
"""A rule, by Kafka's SslPrincipalMapper: DEFAULT, or PATTERN, REPLACEMENT and L or U."""
_SPLITTER: Final = re.compile(rf"\s*(?P<rule>{_RULE})\s*(?:,\s*|$)")
_PARSER: Final = re.compile(_RULE)
_DOT: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\.", re.S)
"""A dot, or what it is no dot in: an escape or a class."""
_NO_TERMINATOR: Final = "[^\\n\\r\\u0085\\u2028\\u2029]"
_MATCHES_LINES: Final = re.compile(r"\(\?[a-zA-Z]*s")
"""The flag with which a dot matches every character."""
_REFERENCE: Final = re.compile(r"\$(\d+)")
_STEP: Final = re.compile(r"\\(?P<literal>.)|\$\{(?P<name>\w+)\}|\$(?P<number>\d+)|(?P<text>[^\\$]+)", re.S)


class NoMatchingRule(ValueError):
    """No rule applies to a name; the message has the name."""


@dataclass(frozen=True, slots=True)
class MappingRule:
    """One rule. `pattern` None is DEFAULT; `case` is L, U or empty."""

    pattern: re.Pattern[str] | None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """The principal; None if the rule does not apply. Raises NoMatchingRule where Kafka fails too."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        replacement = _escape_missing_groups(self.replacement, self.pattern.groups)
        try:
            made = self.pattern.sub(lambda found: _expand(replacement, found), name)
        except (IndexError, ValueError) as error:
            raise NoMatchingRule(f"invalid replacement {self.replacement}: {error}") from error
        return made.lower() if self.case == "L" else made.upper() if self.case == "U" else made


class MappingRules:
    """A list of rules. Raises ValueError for rules that Kafka would reject."""

    def __init__(self, rules: str) -> None:
        self._rules: Final = [
            rule for found in _SPLITTER.finditer(rules.strip()) if (rule := _parse(found["rule"])) is not None
        ]
        if not self._rules:
            raise ValueError("no rule given; use DEFAULT for the distinguished name itself")

    def principal(self, name: str) -> str:
        """The principal for a distinguished name. Raises NoMatchingRule."""
        for rule in self._rules:
            made = rule.apply(name)
            if made is not None:
                return made
        raise NoMatchingRule(f"no rule applies to {name!r}")


def _parse(text: str) -> MappingRule | None:
    """A rule; None for the empty text between two commas."""
    found = _PARSER.match(text)
    assert found is not None, "the last alternative of the pattern matches anything"
    if found.end() != len(text):
        raise ValueError(f"invalid rule {text!r}: unexpected {text[found.end() :]!r}")
    if found[1] is not None:
        return MappingRule(None)
    if found[2] is None:
        return None
    try:
        pattern = re.compile(_python(found[2]), re.ASCII)
    except re.error as error:
        raise ValueError(f"invalid regular expression {found[2]!r}: {error}") from error
    return MappingRule(pattern, found[3], found[4])


def _python(pattern: str) -> str:
    """Translate a Java regular expression: the names of groups, and what a dot matches.

    A dot matches no line terminator, of which Java has five and Python one.
    """
    named = re.sub(r"\(\?<(?![=!])", "(?P<", pattern)
    if _MATCHES_LINES.search(named):
        return named
    return _DOT.sub(lambda found: _NO_TERMINATOR if found[0] == "." else found[0], named)


def _escape_missing_groups(replacement: str, groups: int) -> str:
    """Escape references to groups that the pattern does not have, as Kafka does.

    Like Kafka, this inserts each escape at the reference's position in the original text, though earlier
    escapes have shifted it.
    """
    if groups == 0:
        return replacement
    made = replacement
    for found in _REFERENCE.finditer(replacement):
        if found[1].startswith("0"):
            continue
        number = int(found[1])
        while number > groups and number >= 10:
            number //= 10
        if number > groups:
            made = f"{made[: found.start()]}\\{made[found.start() :]}"
    return made


def _expand(replacement: str, found: re.Match[str]) -> str:
    """Java's Matcher.appendReplacement: `$1`, `${name}`, and a backslash before a literal character."""
    made: list[str] = []
    at = 0
    while at < len(replacement):
        step = _STEP.match(replacement, at)
        if step is None:
            raise ValueError(f"{replacement[at]} is not followed by a group")
        at = step.end()
        if step["number"] is not None:
            digits = step["number"]
            size = 1
            while size < len(digits) and int(digits[: size + 1]) <= found.re.groups:
                size += 1
            made.append(found[int(digits[:size])] or "")
            made.append(digits[size:])
        elif step["name"] is not None:
            made.append(found[step["name"]] or "")
        else:
            made.append(step["literal"] or step["text"])
    return "".join(made)
