"""The blocks of the documentation's pages, and the commands in them."""

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "deploy").glob("*.md")),
]
_BLOCK: Final = re.compile(r"(?ms)^( *)```(\w*)\n(.*?)^ *```$|((?:^    [^\n]*\n)+)")
_SETTINGS: Final = ("listeners:", "quotas:", "usage:")
"""Begin an indented block that is a configuration."""


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the language and the text of each block. The text shows the language of an indented block."""
    for match in _BLOCK.finditer(page.read_text()):
        if match[4] is not None:
            text = dedent(match[4])
            yield ("yaml" if text.startswith(_SETTINGS) else "sh"), text
        else:
            yield match[2], dedent(match[3])


def shell_lines(page: Path) -> Iterator[str]:
    """Yield the lines of the blocks that may be commands, without a prompt; continued lines are joined."""
    for language, text in blocks(page):
        if language in ("sh", ""):
            for line in text.replace("\\\n", " ").splitlines():
                yield line.strip().removeprefix("$ ")
