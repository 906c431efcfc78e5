"""Quotas that are configs of topics and brokers: their definitions, and a snapshot of their values."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, final

TOPIC: Final = "topic"
BROKER: Final = "broker"
DEFAULT_RESOURCE: Final = "<default>"
"""The name of the default topic and of the default broker, whose values apply to those without their own. No
topic can have this name; in requests the default broker's name is empty."""

LONG: Final = "LONG"
BOOLEAN: Final = "BOOLEAN"
LIST: Final = "LIST"
STRING: Final = "STRING"
"""The types of Kafka's ConfigDef that the proxy's configs have."""

_LARGEST: Final = 2**63 - 1
_LARGEST_NODE_ID: Final = 2**31 - 1
_NODE_ID_DIGITS: Final = 10
_MOST_DIGITS: Final = 100
"""The digits of the longest number that is parsed: int() of a long text takes quadratic time."""
TRUE: Final = "true"
FALSE: Final = "false"

_NO_NAMES: Final[frozenset[str]] = frozenset()

Values = dict[str, str]
"""A resource's values by config name, in the spelling of ConfigKey.canonical()."""


class ConfigResource(NamedTuple):
    """A topic or a broker."""

    type: str
    """TOPIC or BROKER."""
    name: str
    """A topic's name, a broker's node id in digits, or DEFAULT_RESOURCE."""

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


def broker_name(node_id: str) -> str | None:
    """The name of the broker with a node id, which may have zeros in front; None if it is not a node id."""
    if not (node_id.isascii() and node_id.isdigit()):
        return None
    digits = node_id.lstrip("0") or "0"
    # int() of a long text takes quadratic time, and fails for more than 4,300 digits.
    fits = len(digits) <= _NODE_ID_DIGITS and int(digits) <= _LARGEST_NODE_ID
    return digits if fits else None


@final
class ConfigKey:
    """One config and its valid values, as in Kafka's ConfigDef."""

    __slots__ = ("_check", "choices", "default", "documentation", "least", "name", "resource", "type")

    def __init__(
        self,
        *,
        name: str,
        resource: str,
        type: str,
        documentation: str,
        default: str | None,
        least: int = 0,
        check: Callable[[str], str] | None = None,
        choices: tuple[str, ...] = (),
    ) -> None:
        self.name: Final = name
        self.resource: Final = resource
        """TOPIC or BROKER."""
        self.type: Final = type
        """LONG, BOOLEAN, LIST or STRING."""
        self.documentation: Final = documentation
        self.default: Final = default
        """The value if it is not configured; None if that is no value, such as no limit."""
        self.least: Final = least
        """The smallest LONG."""
        self.choices: Final = choices
        """The valid values of a STRING; empty: any."""
        self._check: Final = check

    def problem(self, text: str | None) -> str:
        """Why a value is invalid, in the words of Kafka's ConfigException; empty if it is valid."""
        if text is None:
            return f"Null value not supported for : {self.name}"
        why = self._why_not(text.strip())
        shown = f"[{', '.join(split_list(text))}]" if self.type == LIST else text
        return f"Invalid value {shown} for configuration {self.name}: {why}" if why else ""

    def _why_not(self, text: str) -> str:
        if self.type == LONG:
            number = _whole(text)
            if number is None:
                return "Not a number of type LONG"
            if number < self.least:
                return f"Value must be at least {self.least}"
        elif self.type == BOOLEAN and text.lower() not in (TRUE, FALSE):
            return "Expected value to be either true or false"
        elif self.choices and text not in self.choices:
            return f"String must be one of: {', '.join(self.choices)}"
        why = "" if self._check is None else self._check(text)
        return why and f"{self.name} {why}"

    def canonical(self, text: str) -> str:
        """The canonical spelling of a valid value: that of DescribeConfigs."""
        text = text.strip()
        if self.type == LONG:
            return str(int(text))
        if self.type == BOOLEAN:
            return text.lower()
        return ",".join(split_list(text)) if self.type == LIST else text


def split_list(text: str) -> list[str]:
    """The elements of a LIST."""
    text = text.strip()
    return [element.strip() for element in text.split(",")] if text else []


def _whole(text: str) -> int | None:
    """The number of a LONG; None if the text is not one."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        return None
    number = int(text)
    return number if -_LARGEST - 1 <= number <= _LARGEST else None


@final
class Resources:
    """The configured values. Immutable; a change makes another.

    topics, brokers: name -> {config: value}. A broker's name is its node id in digits. Values are valid, and
    in the spelling of ConfigKey.canonical().
    proxy_topics: the names of the topics that the proxy itself writes, to which no default value applies.

    The cost of a look-up does not depend on the number of resources.
    """

    __slots__ = ("_by_key", "brokers", "proxy_topics", "topics")

    def __init__(
        self,
        topics: Mapping[str, Mapping[str, str]] | None = None,
        brokers: Mapping[str, Mapping[str, str]] | None = None,
        *,
        proxy_topics: frozenset[str] = _NO_NAMES,
    ) -> None:
        self.topics: Final = _copy(topics)
        self.brokers: Final = _copy(brokers)
        self.proxy_topics: Final = proxy_topics
        self._by_key: Final = {TOPIC: _by_key(self.topics), BROKER: _by_key(self.brokers)}

    def all(self, resource: str) -> dict[str, Values]:
        """Every configured topic or broker, with its configs; read-only."""
        return self.brokers if resource == BROKER else self.topics

    def configured(self, resource: str, key: str) -> Values:
        """Every resource that has this config, with its value; read-only."""
        values = self._by_key[resource].get(key)
        return _NOTHING if values is None else values

    def own_text(self, resource: str, name: str, key: str) -> str | None:
        """The resource's own value, or None."""
        return self.configured(resource, key).get(name)

    def text(self, resource: str, name: str, key: str) -> str | None:
        """The resource's own value, else the default resource's, else None."""
        values = self.configured(resource, key)
        value = values.get(name)
        return values.get(DEFAULT_RESOURCE) if value is None else value

    def own_number(self, resource: str, name: str, key: str) -> float | None:
        """own_text() of a LONG."""
        text = self.own_text(resource, name, key)
        return None if text is None else float(text)

    def number(self, resource: str, name: str, key: str) -> float | None:
        """text() of a LONG."""
        text = self.text(resource, name, key)
        return None if text is None else float(text)

    def with_changes(self, resource: str, changes: Mapping[str, Mapping[str, str | None]]) -> "Resources":
        """Copy these with some values of topics or brokers changed; None removes one."""
        changed = _changed(self.all(resource), changes)
        if resource == BROKER:
            return Resources(self.topics, changed, proxy_topics=self.proxy_topics)
        return Resources(changed, self.brokers, proxy_topics=self.proxy_topics)


_NOTHING: Final[Values] = {}


def _copy(resources: Mapping[str, Mapping[str, str]] | None) -> dict[str, Values]:
    if resources is None:
        return {}
    return {name: dict(values) for name, values in resources.items() if values}


def _by_key(resources: dict[str, Values]) -> dict[str, Values]:
    by_key: dict[str, Values] = {}
    for name, values in resources.items():
        for key, value in values.items():
            by_key.setdefault(key, {})[name] = value
    return by_key


def _changed(
    resources: dict[str, Values], changes: Mapping[str, Mapping[str, str | None]]
) -> dict[str, Values]:
    changed = dict(resources)
    for name, values in changes.items():
        own = dict(changed.get(name, _NOTHING))
        for key, value in values.items():
            if value is None:
                own.pop(key, None)
            else:
                own[key] = value
        changed[name] = own
    return changed


NO_RESOURCES: Final = Resources()
