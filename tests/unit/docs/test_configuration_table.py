"""docs/configuration.md and config/quota-proxy.yaml match the settings and the kinds of quota."""

import re
import runpy
from pathlib import Path
from typing import Any

import msgspec
import yaml

from proxy.config.open_files import open_files
from proxy.config.settings import Settings
from proxy.config.usage import UsageFiles, UsageSettings, UsageTopic
from tests.support.process.settings import load_settings

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/configuration.md").read_text()
SCRIPT = runpy.run_path(str(ROOT / "docs/configuration_table.py"))


def test_page_has_the_generated_tables() -> None:
    for table in SCRIPT["tables"]():
        assert f"\n\n{table}\n\n" in PAGE, "run docs/configuration_table.py"
    assert SCRIPT["with_tables"](PAGE) == PAGE


def test_table_has_each_key_with_type_default_and_meaning() -> None:
    rows = list(SCRIPT["key_rows"]())
    for start in (
        "| `admin.port` | integer, 0 to 65535 | `9644` | The admin port. |",
        "| `quotas.algorithm` | `pace` or `window` | `pace` | ",
        "| `listeners[].upstream.bootstrap` | list |  | ",
    ):
        assert [row for row in rows if row.startswith(start)] != [], start
    assert all(len(row.split(" | ")) == 4 for row in rows)


def uncommented(text: str) -> str:
    """Return the text with its `#key: value` lines enabled. A prose comment has a space after its `#`."""
    return re.sub(r"(?m)^#(?=[^ ]|  )", "", text)


def test_commented_file_has_every_key() -> None:
    """A key that excludes another key may be in a comment only."""
    text = uncommented((ROOT / "config/quota-proxy.yaml").read_text())
    for row in SCRIPT["key_rows"]():
        *around, last = row.split("`")[1].replace("[]", "").split(".")
        places = _below([yaml.safe_load(text)], around)
        assert any(last in place for place in places) or f" {last}" in _comments(text), row


def _below(places: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Return the values at this path of names, in every item of the lists on the path."""
    for name in names:
        found = [place[name] for place in places if isinstance(place, dict) and name in place]
        places = [item for value in found for item in (value if isinstance(value, list) else [value])]
    return places


def _comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.lstrip().startswith("#"))


def test_commented_file_has_the_defaults() -> None:
    """The file also loads unchanged: it names no file that does not exist."""
    shown = load_settings(ROOT / "config/quota-proxy.yaml")
    open_files(shown)
    plain = Settings(listeners=shown.listeners)
    assert (shown.admin, shown.limits, shown.metrics) == (plain.admin, plain.limits, plain.metrics)
    assert shown.usage is None
    assert msgspec.structs.replace(shown.quotas, clients=()) == plain.quotas


def test_usage_of_the_commented_file_has_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(uncommented((ROOT / "config/quota-proxy.yaml").read_text()))
    usage = load_settings(file).usage
    assert usage == UsageSettings(kafka=UsageTopic(), files=UsageFiles(folder=str(tmp_path / "usage-events")))


def test_smallest_file_of_the_page_works(tmp_path: Path) -> None:
    text = PAGE.split("```yaml\n")[1].split("```")[0]
    file = tmp_path / "smallest.yaml"
    file.write_text(text)
    assert load_settings(file).listeners[0].upstream.bootstrap == ("127.0.0.1:19092",)


def test_quotas_of_the_page_work(tmp_path: Path) -> None:
    smallest, *others = (part.split("```")[0] for part in PAGE.split("```yaml\n")[1:])
    [quotas] = [text for text in others if text.startswith("quotas:")]
    file = tmp_path / "quotas.yaml"
    file.write_text(smallest + quotas)
    assert len(load_settings(file).quotas.clients) == 2
