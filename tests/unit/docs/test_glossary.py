"""Retired words do not come back: each thing has one name, in code, messages, tests and pages alike.

docs/design.md has the terms in use. The verb "answer" stays for what the proxy does with an intercepted
request; a noun, a name of a variable, and what a broker does are "response" and "respond".
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).parents[3]
SUFFIXES: Final = {".py", ".md", ".yaml", ".toml", ".service", ".html", ".sh"}
NAMES: Final = {"Makefile", "Dockerfile"}
GENERATED: Final = {"build", "dist", "node_modules", "results", "__pycache__"}
"""Folders that no one edits; folders that begin with a dot are skipped too."""
EXEMPT: Final = {
    Path(__file__).relative_to(ROOT): "has the retired words themselves",
    Path("CHANGELOG.md"): "names what has been renamed",
}
ANY_PREFIX: Final = r"\w*"
"""A pattern that begins with this finds a part of a word."""
IS_LETTER: Final = re.compile("[A-Za-z]")


class Retired(NamedTuple):
    """A retired word."""

    pattern: str
    """A regular expression for whole words; without regard to case, unless it has a capital letter."""
    instead: str
    example: str
    """A text that the pattern must find."""


class Allowed(NamedTuple):
    """A text that contains a retired word and stays."""

    pattern: str
    reason: str


RETIRED: Final = (
    Retired(r"\w*refus\w*", "reject, rejected, rejection", "the request is refused"),
    Retired(r"HeldWhole", "FrameBuffer", "HeldWhole(frame)"),
    Retired(r"class (Turns|Whole)", "InFlight, FrameBuffer", "class Turns:"),
    Retired(r"HeldFetch|HeldTopics|class Fetches", "FetchGate, OmittablePartitions", "HeldFetch()"),
    Retired(r"own_api_keys|AnsweredApi", "intercepted_api_keys, InterceptedApi", "AnsweredApi(KEY)"),
    Retired(r"class (Reception|Entrance)", "ClientIdentification, BootstrapRouter", "class Entrance:"),
    Retired(r"class (Owner|Door)", "ConnectionHost, TlsAdmission", "class Door:"),
    Retired(r"class (Bill|Cost|Refusing)", "PermitCharge, Permits, Rejection", "class Bill:"),
    Retired(r"class (Pace|Collector)", "Yielder, GarbageCollection", "class Pace:"),
    Retired(r"know_by", "use_cluster_of", "know_by(listener)"),
    Retired(r"who\s+(is|are)\s+over", "a client over its quota", "Who is over waits"),
    Retired(r"hears?\s+nothing", "is not forwarded", "the broker hears nothing"),
    Retired(r"pass_by|pass_items", "forward, charge_items", "relay.pass_by(5)"),
    Retired(r"passed_on", "forwarded", "is_passed_on"),
    Retired(r"fellows?", "peers", "its fellows"),
    Retired(r"greet\w*", "first_request_seen", "_greet(client)"),
    Retired(r"look(s|ed)?[_\s]+after", "close_idle", "look_after()"),
    Retired(r"put(s|ting)?[_\s]+off", "gc_paused, delay", "while_it_is_put_off"),
    Retired(r"garbage(?![_\s]+collect)", "malformed, not Kafka's protocol", "garbage arrives"),
    Retired(
        r"(held|hold|holds|holding)[_\s]+back",
        "omit, throttle, mute",
        "what is held back",
    ),
    Retired(
        r"(left|leave|leaves|leaving)[_\s]+out",
        "omit, skip, exclude",
        "what is left out",
    ),
    Retired(r"pass(es|ed|ing)?\s+on", "forward", "it is passed on"),
    Retired(r"what\s+is\s+over", "traffic over a limit", "what is over is dropped"),
    Retired(r"(some|every|no)body\s+else's", "other clients'", "nobody else's"),
    Retired(r"somebody", "a client", "somebody waits"),
    Retired(r"(an?|the|its|their|no|own|every|each|whose|two|'s)\s+answers?", "response", "the answer to it"),
    Retired(r"(?<![._\w])answers?( =|: [a-z]|\.[a-z]|\[)", "response", "answer = client.ask(request)"),
    Retired(
        r"(broker|controller|leader|cluster|server|kafka)s?(\s+(has|have|that|had))?\s+answer\w*",
        "respond",
        "a broker answers in time",
    ),
    Retired(r"held", "buffered, waiting, omitted, muted", "held for a client"),
)
ALLOWED: Final = (
    Allowed(r"\brefusal_error\b", "a configuration key"),
    Allowed(r"\bproduce_refused\b|\bPRODUCE_REFUSED\b", "a label value of /metrics"),
    Allowed(r"\bConnection refused\b|\bConnectionRefusedError\b|match=r?\"refused\W", "the system's error"),
    Allowed(r"\bgc\.garbage\b", "an attribute of Python's gc module"),
    Allowed(r"\w*(series|partitions)_left_out\w*", "a metric's name"),
)


@cache
def texts() -> list[tuple[Path, str]]:
    """Every file of the tree that a person writes, without the allowed texts."""
    allowed = re.compile("|".join(entry.pattern for entry in ALLOWED))
    return [
        (path.relative_to(ROOT), allowed.sub("", path.read_text()))
        for path in files(ROOT)
        if path.relative_to(ROOT) not in EXEMPT
    ]


def files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in GENERATED or path.is_symlink():
            continue
        if path.is_dir():
            yield from files(path)
        elif path.suffix in SUFFIXES or path.name in NAMES:
            yield path


@cache
def lowered() -> list[str]:
    """The same texts in lower case: a search without regard to case takes ten times as long."""
    return [text.lower() for _, text in texts()]


def is_lower(word: Retired) -> bool:
    return re.search("[A-Z]", word.pattern) is None


def starts(word: Retired, text: str) -> Iterator[int]:
    """Where the text has the word. If the word has no capital letter, the text must have none.

    The character before a match is compared afterwards: a pattern that begins with letters is found faster.
    """
    pattern = re.compile(rf"(?:{word.pattern.removeprefix(ANY_PREFIX)})(?![A-Za-z])")
    start = 0
    while match := pattern.search(text, start):
        start = match.start() + 1
        if word.pattern.startswith(ANY_PREFIX) or not IS_LETTER.match(
            text[match.start() - 1 : match.start()]
        ):
            yield match.start()
            start = match.end()


def found(word: Retired) -> list[str]:
    """Return `path:line: text` of every place with the word, and paths whose names have it."""
    places = []
    for (path, text), lower in zip(texts(), lowered(), strict=True):
        searched, name = (lower, path.name.lower()) if is_lower(word) else (text, path.name)
        places += [str(path) for _ in starts(word, name)]
        for place in starts(word, searched):
            number = searched.count("\n", 0, place)
            places.append(f"{path}:{number + 1}: {text.splitlines()[number].strip()}")
    return places


@pytest.mark.parametrize("word", RETIRED, ids=lambda word: word.example)
def test_retired_word_is_not_in_the_tree(word: Retired) -> None:
    assert found(word) == [], f"write: {word.instead}"


@pytest.mark.parametrize("word", RETIRED, ids=lambda word: word.example)
def test_pattern_finds_its_example(word: Retired) -> None:
    assert list(starts(word, word.example.lower() if is_lower(word) else word.example))


def test_a_type_name_means_one_thing() -> None:
    """No two public classes of the proxy have the same name."""
    code = [text for path, text in texts() if path.parts[0] == "proxy" and path.suffix == ".py"]
    count = Counter(name for text in code for name in re.findall(r"(?m)^class ([A-Z]\w+)", text))
    assert [name for name, times in count.items() if times > 1] == []


def test_the_tree_is_scanned() -> None:
    scanned = {path.parts[0] for path, _ in texts()}
    assert scanned >= {"proxy", "pipeline", "bench", "tests", "docs", "config", "deploy", "README.md"}


@pytest.mark.parametrize("allowed", ALLOWED, ids=lambda allowed: allowed.reason)
def test_allowed_text_is_in_use(allowed: Allowed) -> None:
    pattern = re.compile(allowed.pattern)
    assert any(pattern.search(path.read_text()) for path in files(ROOT) if path != Path(__file__))
