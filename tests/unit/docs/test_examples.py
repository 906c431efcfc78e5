"""Every YAML block of the pages is a configuration that the proxy takes, the Python block is a callback of
quotas, and all commands of the proxy and of the pipeline parse.
"""

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from pipeline.cli.main import main as quota_pipeline
from proxy.cli.main import main as quota_proxy
from proxy.quota.limits.enforcement import UNLIMITED
from proxy.quota_callback import load_callback
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
COMMANDS: dict[str, click.Command] = {"quota-proxy": quota_proxy, "quota-pipeline": quota_pipeline}
COMMAND = re.compile(rf"^(?:[\w./-]*/)?({'|'.join(COMMANDS)}) (?=\w)")


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
                found.append(pytest.param(command[1], words, id=f"{page.name}: {' '.join(words)}"))
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


@pytest.mark.parametrize(("name", "words"), commands())
def test_command_parses(name: str, words: list[str]) -> None:
    parse(COMMANDS[name], name, words)


def test_the_callback_of_the_page_chooses_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [text] = [text for language, text in blocks(ROOT / "docs/quota-callback.md") if language == "python"]
    (tmp_path / "rules_of_the_page.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    callback = load_callback("rules_of_the_page:Tiers", "closed")
    limits = {
        (user, topic): found.limit
        for user, topic in [("gold-alice", ""), ("bob", "orders"), ("bob", "others")]
        if (found := callback.find("producer_byte_rate", user, "", 0.0, topic, 3 if topic else -1))
    }
    assert limits == {("gold-alice", ""): 50e6, ("bob", "orders"): 1e6, ("bob", "others"): UNLIMITED}


def test_examples_are_found() -> None:
    assert len(of_language("yaml")) > 10
    assert {each.values[0] for each in commands()} == set(COMMANDS)
    assert len(commands()) > 30
    with pytest.raises(click.UsageError):
        parse(quota_proxy, "quota-proxy", ["check", "--confg", "x"])
