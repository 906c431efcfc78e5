"""Write docs/commands.md from the help of the commands.

    .venv/bin/python docs/commands_page.py

A test fails if the page differs.
"""

from collections import Counter
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click

from pipeline.cli.main import main as quota_pipeline
from proxy.cli.main import main as quota_proxy

PAGE = Path(__file__).with_name("commands.md")
INTRODUCTION = """# Commands

Each command prints its part of this page with `--help`. [Quotas as code](quotas-as-code.md) and the
[pipeline](pipeline.md) have examples, and [shell completion](quotas-as-code.md#shell-completion) completes
commands and options.
"""
OPTIONS = "| option | meaning |\n|---|---|"

Option = tuple[str, str]
"""As in the help: the option with its value, and its meaning."""


def page() -> str:
    """Return the whole page."""
    return "\n".join(
        [INTRODUCTION, *section("quota-proxy", quota_proxy), *section("quota-pipeline", quota_pipeline)]
    )


def section(name: str, group: click.Group) -> Iterator[str]:
    """Yield the parts of the section of a group, and then those of the groups in it."""
    context = click.Context(group, info_name=name)
    found = {f"{name} {each}": group.get_command(context, each) for each in group.list_commands(context)}
    commands = {
        each: command for each, command in found.items() if command is not None and not command.hidden
    }
    groups = {each: command for each, command in commands.items() if isinstance(command, click.Group)}
    yield f"## {name}\n"
    yield text(group)
    yield from described({each: command for each, command in commands.items() if each not in groups})
    for each, inner in groups.items():
        yield from section(each, inner)


def described(commands: dict[str, click.Command]) -> Iterator[str]:
    """Yield the descriptions of commands, after the options that at least half of them share."""
    options = {name: options_of(command, name) for name, command in commands.items()}
    counts = Counter(option for found in options.values() for option in found)
    shared = [option for option, count in counts.items() if 2 * count >= len(commands)]
    if shared:
        yield "Several of the commands have these options:\n"
        yield table(shared)
    for name, command in commands.items():
        yield f"### {name}\n"
        yield f"`{usage(command, name)}`\n"
        yield text(command)
        own = [option for option in options[name] if option not in shared]
        if own:
            yield table(own)
        others = [
            f"`{option.split()[0]}`" for option, meaning in options[name] if (option, meaning) in shared
        ]
        if others:
            yield f"{'Also' if own else 'Options'}: {', '.join(others)}.\n"


def options_of(command: click.Command, name: str) -> list[Option]:
    """Return the options of a command, without --help."""
    context = click.Context(command, info_name=name)
    options = [each for each in command.params if isinstance(each, click.Option)]
    records = [each.get_help_record(context) for each in options]
    return [record for record in records if record is not None]


def usage(command: click.Command, name: str) -> str:
    """Return how to call a command, in one line."""
    words = command.collect_usage_pieces(click.Context(command, info_name=name))
    return " ".join([name, *words])


def text(command: click.Command) -> str:
    """Return the description of a command, with its epilog."""
    found = [part for part in (command.help, command.epilog) if part]
    return "\n\n".join(escaped(cleandoc(part)) for part in found) + "\n"


def table(options: list[Option]) -> str:
    """Return a table of options."""
    rows = [f"| `{escaped(option)}` | {escaped(meaning)} |" for option, meaning in options]
    return "\n".join([OPTIONS, *rows]) + "\n"


def escaped(words: str) -> str:
    """Return words of a help such that Markdown shows them as they are."""
    words = words.replace("  [", " [")
    return words.replace("|", "\\|").replace("<default>", "`<default>`")


if __name__ == "__main__":
    PAGE.write_text(page())
