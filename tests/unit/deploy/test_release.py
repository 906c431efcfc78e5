"""The release workflow is valid YAML, builds what there is, and gives no job more rights than it needs."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

ROOT: Final = Path(__file__).parents[3]
WORKFLOW: Final = (ROOT / ".github/workflows/release.yaml").read_text()
FLOW: Final[dict[Any, Any]] = yaml.safe_load(WORKFLOW)


def test_wheels_are_built_for_each_supported_python() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    prefix = "Programming Language :: Python :: 3."
    minors = [each.removeprefix(prefix) for each in settings["project"]["classifiers"] if prefix in each]
    recipe = settings["tool"]["cibuildwheel"]
    assert recipe["build"] == [f"cp3{minor}-*" for minor in minors]
    assert recipe["environment"] == {"QUOTA_PROXY_BUILD": "require"}


def test_the_wheels_name_the_repository_that_releases_them(tmp_path: Path) -> None:
    """pyproject.toml does not, for a copy of the repository would name another one."""
    [script] = [
        step["run"] for step in FLOW["jobs"]["wheels"]["steps"] if "pyproject.toml" in step.get("run", "")
    ]
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    names = {"GITHUB_SERVER_URL": "https://git.example.com", "GITHUB_REPOSITORY": "team/quota-proxy"}
    subprocess.run(["bash", "-ec", script], cwd=tmp_path, env=names, check=True)
    before, after = (tomllib.loads((each / "pyproject.toml").read_text()) for each in (ROOT, tmp_path))
    assert after["project"].pop("urls") == {"Source": "https://git.example.com/team/quota-proxy"}
    assert after == before


def test_the_images_are_those_of_the_repository() -> None:
    images = FLOW["jobs"]["image"]["strategy"]["matrix"]["include"]
    assert [image["name"] for image in images] == ["quota-proxy", "quota-pipeline"]
    assert all((ROOT / image["file"]).exists() for image in images)


@pytest.mark.parametrize("job", FLOW["jobs"])
def test_only_signing_jobs_have_an_identity(job: str) -> None:
    assert FLOW["permissions"] == {"contents": "read"}
    rights = FLOW["jobs"][job].get("permissions", FLOW["permissions"])
    assert ("id-token" in rights) == (job in ("publish", "image"))
    assert rights["contents"] == "read"


def test_actions_are_pinned_to_commits() -> None:
    actions = re.findall(r"uses: (.+)", WORKFLOW)
    assert actions
    assert [each for each in actions if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", each)] == []
