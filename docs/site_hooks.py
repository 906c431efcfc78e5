"""What MkDocs does to a page before it builds the site: links to files outside of docs become plain paths.

The site has the pages of docs only. In the repository, these links lead to the files.
"""

import re

OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)\s]+)\)")


def on_page_markdown(markdown: str, **_: object) -> str:
    """MkDocs calls this with the text of each page."""
    return OUTSIDE.sub(_plain, markdown)


def _plain(link: re.Match[str]) -> str:
    text, path = link[1], link[2].split("#")[0]
    return text if text.strip("`") == path else f"{text} (`{path}`)"
