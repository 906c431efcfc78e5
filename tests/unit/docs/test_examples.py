"""Every YAML block of the pages is a configuration that the proxy takes; all its commands there parse."""

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from proxy.cli.main import main
from tests.support.pages import PAGES, ROOT, blocks, shell_lines
from tests.support.process.settings import load_settings

PLACEHOLDERS = {"HOST:PORT": "kafka:9092", "FILE": "file"}
REPLICATION = {
    "replication": True,
    "broker_port_base": 29200,
    "upstream": {"brokers": {1: "127.0.0.1:19093"}},
}
LISTENERS = [{"upstream": {"bootstrap": ["127.0.0.1:19092"]}}, {"name": "replication", **REPLICATION}]
"""Of a block without listeners."""
OTHERS = ("apiVersion:", "receivers:")
"""Begin the files of Kubernetes and of the OpenTelemetry Collector."""
VALUES = "# values"
"""Begins the values of the Helm chart."""
COMMAND = re.compile(r"^(?:[\w./-]*/)?quota-proxy (?=\w)")


def of_language(*languages: str) -> list[Any]:
    return [
        pytest.param(text, id=f"{page.relative_to(ROOT)}:{number}")
        for page in PAGES
        for number, (language, text) in enumerate(blocks(page))
        if language in languages
    ]


@pytest.mark.parametrize("text", of_language("yaml"))
def test_yaml_is_a_configuration(text: str, tmp_path: Path) -> None:
    shown = yaml.safe_load(text)
    if text.startswith(OTHERS):
        return
    if text.startswith(VALUES):
        shown = shown["config"]
        shown["listeners"][0].setdefault("advertised_host", "the-service")
    file = tmp_path / "quota-proxy.yaml"
    file.write_text(yaml.safe_dump({"listeners": LISTENERS, **shown}))
    load_settings(file)


def commands() -> list[Any]:
    found = []
    for page in PAGES:
        for line in shell_lines(page):
            command = COMMAND.match(line)
            if command is not None:
                words = shlex.split(line[command.end() :], comments=True)
                words = [PLACEHOLDERS.get(word, word) for word in words]
                found.append(pytest.param(words, id=f"{page.name}: {' '.join(words)}"))
    return found


def parse(command: click.Command, name: str, words: list[str], parent: click.Context | None = None) -> None:
    """Parse the words as click does before it runs a command. Raises click.UsageError."""
    context = command.make_context(name, list(words), parent=parent)
    if isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        subname, subcommand, rest = command.resolve_command(context, rest)
        assert subname is not None
        assert subcommand is not None
        parse(subcommand, subname, rest, context)


@pytest.mark.parametrize("words", commands())
def test_command_parses(words: list[str]) -> None:
    parse(main, "quota-proxy", words)


def test_examples_are_found() -> None:
    assert len(of_language("yaml")) > 10
    assert len(commands()) > 5
    with pytest.raises(click.UsageError):
        parse(main, "quota-proxy", ["check", "--confg", "x"])
