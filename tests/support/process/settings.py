"""A configuration from the text of its file, and the error if the file is rejected."""

from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest

from proxy.config.settings import Settings
from proxy.errors import KeyPath, SettingsError
from proxy.quota.kinds import load_kinds
from proxy.store.from_settings import Configuration, load_configuration

SMALLEST = "listeners: [{upstream: {bootstrap: [127.0.0.1:19092]}}]\n"
KINDS: Final = load_kinds()
QUOTA_KEYS: Final = {key.name: key for kind in KINDS for key in kind.keys}


def configuration(tmp_path: Path, text: str) -> Configuration:
    file = tmp_path / "proxy.yaml"
    file.write_text(dedent(text))
    return load_configuration(file, KINDS)


def load_settings(file: Path) -> Settings:
    """Load the settings of a file, with its quotas checked as the proxy does."""
    return load_configuration(file, KINDS).settings


def read(tmp_path: Path, text: str) -> Settings:
    return configuration(tmp_path, text).settings


def rejection(tmp_path: Path, text: str) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        configuration(tmp_path, text)
    return caught.value


def rejected_key(tmp_path: Path, text: str) -> KeyPath:
    return rejection(tmp_path, text).key
