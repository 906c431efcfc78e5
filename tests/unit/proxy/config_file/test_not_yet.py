"""Keys of later versions: each is refused with its own sentence, and none of them works already."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from proxy.config_file.not_yet import NOT_YET, unknown
from proxy.errors import SettingsError
from proxy.settings import load


def file_with(pattern: str) -> dict[str, Any]:
    """A file that is fine but for the one key."""
    listener: dict[str, Any] = {"upstream": {"bootstrap": ["k:9092"]}}
    client: dict[str, Any] = {"entity": {"user": "a"}, "producer_byte_rate": 1}
    content: dict[str, Any] = {"listeners": [listener], "quotas": {"clients": [client]}}
    *around, last = pattern.replace("[]", ".0").split(".")
    place: Any = content
    for part in around:
        place = place[0 if part == "0" else part]
    place[last] = {}
    return content


@pytest.mark.parametrize("pattern", NOT_YET)
def test_key_is_refused(tmp_path: Path, pattern: str) -> None:
    file = tmp_path / "proxy.yaml"
    file.write_text(yaml.safe_dump(file_with(pattern)))
    with pytest.raises(SettingsError) as caught:
        load(file)
    key = pattern.replace("[]", "[0]")
    assert f"{key}: {NOT_YET[pattern]} is not in this version yet; remove the key" in str(caught.value)


def test_near_miss_has_a_hint() -> None:
    assert str(unknown(("admin", "prot"), ["bind", "port"])) == "admin.prot: unknown key; did you mean port?"


def test_anything_else_is_told_what_there_is() -> None:
    message = str(unknown(("admin", "colour"), ["port", "bind"]))
    assert message == "admin.colour: unknown key; expected one of bind, port"
