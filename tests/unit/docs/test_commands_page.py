"""docs/commands.md is what its script writes, and has every command and option."""

import runpy
from pathlib import Path

import click
import pytest

from pipeline.cli.main import main as quota_pipeline
from proxy.cli.main import main as quota_proxy

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/commands.md").read_text()
SCRIPT = runpy.run_path(str(ROOT / "docs/commands_page.py"))


def test_the_page_is_the_generated_one() -> None:
    assert SCRIPT["page"]() == PAGE, "run docs/commands_page.py"


def missing(name: str, command: click.Command) -> list[str]:
    """The commands, and the options of commands, that the page does not have."""
    if command.hidden:
        return []
    if isinstance(command, click.Group):
        context = click.Context(command)
        inner = {each: command.get_command(context, each) for each in command.list_commands(context)}
        return [gap for each, found in inner.items() if found for gap in missing(f"{name} {each}", found)]
    section = PAGE.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
    options = [each.opts[0] for each in command.params if isinstance(each, click.Option)]
    return [f"{name} {option}" for option in ["", *options] if f"`{option or name}" not in section]


@pytest.mark.parametrize(
    ("name", "group"), [("quota-proxy", quota_proxy), ("quota-pipeline", quota_pipeline)]
)
def test_every_command_and_option_is_on_the_page(name: str, group: click.Group) -> None:
    assert missing(name, group) == []
    group = click.Group(commands={"new": click.Command("new", params=[click.Option(["--option"])])})
    assert missing(name, group) == [f"{name} new ", f"{name} new --option"]
