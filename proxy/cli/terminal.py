"""Text between the commands and a terminal, whatever the terminal's encoding."""

import os
import sys
from io import TextIOWrapper
from typing import Any, Final

import click


class NameParam(click.ParamType[str]):
    """A name of Kafka, which is UTF-8."""

    name = "NAME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Decode the argument as UTF-8: Python keeps bytes that it cannot decode as surrogates."""
        try:
            return os.fsencode(value).decode() if _has_surrogates(value) else str(value)
        except UnicodeError:
            self.fail("the name is not UTF-8", param, ctx)


NAME: Final = NameParam()


def escape_what_it_cannot_show() -> None:
    """Have standard output escape characters that its encoding lacks, instead of failing."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def write_file(text: str) -> None:
    """Write the text of a file to standard output, as UTF-8."""
    click.echo(text.encode(), nl=False)


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
