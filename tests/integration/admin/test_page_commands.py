"""The commands of the pages that set and show quotas run, in the order of the page, through a real proxy."""

import re
import shlex
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from proxy.cli.main import main
from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.topics import make_topic
from tests.support.pages import PAGES, shell_lines
from tests.support.process.proxy_process import HOST, ProxyProcess, ProxyRunner

pytestmark = pytest.mark.kafka
STORE = "page-commands"
TOOL = "kafka-configs.sh "
QUOTAS = "quota-proxy quotas "
ADMIN = re.compile(r"quota-proxy (explain|top) ")
EXAMPLE = re.compile(r"`(--entity-type [^`]*--add-config [^`]*)`")
"""In the README, what completes `kafka-configs.sh --alter`."""
SHELL = re.compile(r"\$\([^)]*\)")
"""A time in the future."""
PROXY = re.compile(r"PROXY|(?:proxy|localhost|kafka\.example\.com):29092")
BROKER = "kafka-1:9092"
FIRST = "quota-proxy quotas set --bootstrap PROXY --topic orders producer.byte.rate=1048576"
"""Pages show the quotas of this topic. They run in any order, and each on its own."""
DIFFERS = 1
"""The exit code of `diff`."""
FEWEST = 25


def commands(page: Path) -> list[str]:
    """The commands of a page."""
    found = [line for line in shell_lines(page) if line.startswith((TOOL, QUOTAS)) or ADMIN.match(line)]
    examples = EXAMPLE.findall(page.read_text())
    return found + [f"{TOOL}--bootstrap-server PROXY --alter {example}" for example in examples]


def test_commands_are_found() -> None:
    assert sum(len(commands(page)) for page in PAGES) >= FEWEST


@pytest.fixture(scope="module")
def proxy(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    make_topic(kafka, "orders")
    return run_proxy(kafka.bootstrap, settings={"quotas": {"store": {"topic": STORE}}})


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
def test_commands_of_a_page_run(
    page: Path, kafka: EmbeddedKafka, proxy: ProxyProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    failed = {}
    for command in (FIRST, *commands(page)):
        line = PROXY.sub(proxy.bootstrap, command).replace(BROKER, kafka.bootstrap)
        line = SHELL.sub(str(int(time.time() + 3600) * 1000), line)
        problem = run(shlex.split(line, comments=True), kafka, proxy)
        if problem:
            failed[command] = problem
    assert failed == {}


def run(words: list[str], kafka: EmbeddedKafka, proxy: ProxyProcess) -> str:
    """Run a command; what it says if it fails."""
    if words[0] == TOOL.strip():
        done = kafka.run_tool("kafka-configs", *words[1:], check=False)
        return "" if done.returncode == 0 else done.stdout + done.stderr
    arguments = words[1:]
    if arguments[0] != "quotas":
        once = ["--once"] if arguments[0] == "top" and "--once" not in arguments else []
        arguments = [*arguments, *once, "--admin", f"http://{HOST}:{proxy.admin_port}"]
    if arguments[1] == "log":
        arguments = [*arguments, "--topic", STORE]
    result = CliRunner().invoke(main, arguments, input="y\n")
    allowed = (0, DIFFERS) if arguments[:2] == ["quotas", "diff"] else (0,)
    return "" if result.exit_code in allowed else result.output
