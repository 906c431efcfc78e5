"""A configuration file from text, and the sentence with which one is rejected."""

from pathlib import Path
from textwrap import dedent

import pytest

from proxy.config.settings import Settings, load
from proxy.errors import SettingsError

SMALLEST = "listeners: [{upstream: {bootstrap: [127.0.0.1:19092]}}]\n"


def read(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "proxy.yaml"
    file.write_text(dedent(text))
    return load(file)


def rejection(tmp_path: Path, text: str) -> str:
    """The sentence with which the file is rejected, without the file's name."""
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, text)
    return str(caught.value).removeprefix(str(tmp_path / "proxy.yaml")).removeprefix(":").strip()
