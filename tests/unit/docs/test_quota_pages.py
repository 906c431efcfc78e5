"""The pages that list quotas have each of them."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from proxy.cli.main import main
from proxy.quota.kinds import load_kinds

ROOT = Path(__file__).parents[3]
CLIENT_QUOTAS = [key.name for kind in load_kinds() for key in kind.keys]
CONFIGS = [key.name for kind in load_kinds() for key in kind.configs]


def lists(page: str, name: str) -> bool:
    return f"`{name}`" in (ROOT / page).read_text()


@pytest.mark.parametrize("page", ["README.md", "docs/quotas.md", "docs/sharing.md", "docs/configuration.md"])
def test_pages_of_client_quotas(page: str) -> None:
    assert [name for name in CLIENT_QUOTAS if not lists(page, name)] == []


@pytest.mark.parametrize("page", ["docs/topic-and-broker-configs.md", "docs/configuration.md"])
def test_pages_of_configs(page: str) -> None:
    assert [name for name in CONFIGS if not lists(page, name)] == []


def test_the_help_of_quotas_set() -> None:
    shown = CliRunner().invoke(main, ["quotas", "set", "--help"]).output
    assert [name for name in CLIENT_QUOTAS if name not in shown] == []
