"""Kafka's ssl.principal.mapping.rules (KIP-371): from a certificate's distinguished name to a principal.

Rules are separated by commas; the first that applies makes the name:

    DEFAULT                            the distinguished name as it is
    RULE:PATTERN/REPLACEMENT/[LU]      PATTERN has to match all of the name; what it finds is replaced, and
                                       the result is made lower (L) or upper case (U)

The syntax is Kafka's own, Java's regular expressions and replacements included, as far as Python's have the
same. So are the results, those of odd replacements too.
"""

import re
from dataclasses import dataclass
from typing import Final

_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(?:.*?)"
_SPLITTER: Final = re.compile(rf"\s*(?P<rule>{_RULE})\s*(?:,\s*|$)")
_PARSER: Final = re.compile(_RULE)
_REFERENCE: Final = re.compile(r"\$(\d+)")
_STEP: Final = re.compile(r"\\(?P<literal>.)|\$\{(?P<name>\w+)\}|\$(?P<number>\d+)|(?P<text>[^\\$]+)", re.S)


class NoMatchingRule(ValueError):
    """No rule makes a principal of a name; the message says which name."""


@dataclass(frozen=True, slots=True)
class MappingRule:
    """`pattern` None: DEFAULT. `case` is L, U or empty."""

    pattern: re.Pattern[str] | None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """The principal; None where the rule does not apply. NoMatchingRule where Kafka fails as well."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        replacement = _escape_missing_groups(self.replacement, self.pattern.groups)
        try:
            made = self.pattern.sub(lambda found: _expand(replacement, found), name)
        except (IndexError, ValueError) as error:
            raise NoMatchingRule(f"the replacement {self.replacement} cannot be made: {error}") from error
        return made.lower() if self.case == "L" else made.upper() if self.case == "U" else made


class MappingRules:
    """Raises ValueError for rules that Kafka would reject."""

    def __init__(self, rules: str) -> None:
        self._rules: Final = [
            rule for found in _SPLITTER.finditer(rules.strip()) if (rule := _parse(found["rule"])) is not None
        ]
        if not self._rules:
            raise ValueError("has no rule; DEFAULT takes the name as it is")

    def principal(self, name: str) -> str:
        """The principal of a distinguished name. Raises NoMatchingRule."""
        for rule in self._rules:
            made = rule.apply(name)
            if made is not None:
                return made
        raise NoMatchingRule(f"no rule applies to {name!r}")


def _parse(text: str) -> MappingRule | None:
    """A rule; None for the nothing between two commas."""
    found = _PARSER.match(text)
    assert found is not None, "the pattern's last alternative matches anything"
    if found.end() != len(text):
        raise ValueError(f"{text!r} is no rule: {text[found.end() :]!r} is not expected in it")
    if found[1] is not None:
        return MappingRule(None)
    if found[2] is None:
        return None
    try:
        pattern = re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", found[2]), re.ASCII)
    except re.error as error:
        raise ValueError(f"{found[2]!r} is no regular expression that can be used: {error}") from error
    return MappingRule(pattern, found[3], found[4])


def _escape_missing_groups(replacement: str, groups: int) -> str:
    """References to groups that the pattern does not have stand for themselves, in Kafka's way of doing so:
    positions are those of the text before the first escape.
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
    """Java's Matcher.appendReplacement: `$1`, `${name}`, and a backslash before what stands for itself."""
    made: list[str] = []
    at = 0
    while at < len(replacement):
        step = _STEP.match(replacement, at)
        if step is None:
            raise ValueError(f"{replacement[at]} at its end, or before no group")
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
