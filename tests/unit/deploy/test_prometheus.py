"""Alerting rules and the dashboard: queries that Prometheus accepts, of metrics that the proxy has."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.pages import blocks

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy/prometheus"
DASHBOARD = ROOT / "deploy/grafana/quota-proxy.json"
METRIC = re.compile(r"\bquota_proxy_(\w+)")
SUFFIXES = ("_total", "_bucket", "_sum", "_count")
PROMTOOL = shutil.which("promtool")
COLLECTOR = shutil.which("otelcol")
with_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alert_queries() -> list[str]:
    return [rule["expr"] for rule in rules()]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def dashboard_queries() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel.get("targets", ())]


def exported() -> set[str]:
    """The words in the sources; the names of families, without the prefix, are among them."""
    sources = (ROOT / "proxy/telemetry/metrics").rglob("*.py")
    return {name for source in sources for name in re.findall(r"\w+", source.read_text())}


def promtool(*arguments: str) -> None:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_page_says_what_to_do_about_each_alert() -> None:
    section = (ROOT / "docs/troubleshooting.md").read_text().partition("## An alert fires")[2]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    assert sorted(re.findall(r"\w+", " ".join(rows))) == sorted(rule["alert"] for rule in rules())


@pytest.mark.parametrize("queries", [alert_queries(), dashboard_queries()], ids=["alerts", "dashboard"])
def test_metrics_exist_and_are_documented(queries: list[str]) -> None:
    names = {name for query in queries for name in METRIC.findall(query)}
    assert names
    documented = METRIC.findall((ROOT / "docs/metrics.md").read_text())
    families = exported()
    for name in names:
        family = next((name.removesuffix(each) for each in SUFFIXES if name.endswith(each)), name)
        # The sources compose the names of the throttled replicas' families.
        assert family in families or "_replication_throttled_" in family, name
        assert name in documented or family in documented, name


def test_each_panel_has_a_place_of_its_own() -> None:
    places = [
        (panel["gridPos"]["y"], panel["gridPos"]["x"]) for panel in panels() if panel["gridPos"]["w"] > 0
    ]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in panels()})


@with_promtool
def test_prometheus_accepts_every_rule() -> None:
    promtool("check", "rules", str(FOLDER / "alerts.yaml"))


def test_every_alert_has_a_test() -> None:
    tests = (FOLDER / "alerts_test.yaml").read_text()
    alerts = re.findall(r"- alert: (\w+)", (FOLDER / "alerts.yaml").read_text())
    assert len(alerts) == len(alert_queries())
    assert [
        alert
        for alert in alerts
        if f'alertname="{alert}"' not in tests and f"alertname: {alert}" not in tests
    ] == []


@with_promtool
def test_alerts_fire_when_they_should() -> None:
    promtool("test", "rules", str(FOLDER / "alerts_test.yaml"))


@with_promtool
def test_prometheus_accepts_every_query_of_the_dashboard(tmp_path: Path) -> None:
    rules = [
        {
            "record": f"query_{number}",
            "expr": query.replace("$__rate_interval", "1m").replace("$instance", ".*"),
        }
        for number, query in enumerate(dashboard_queries())
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", str(file))


def collector(tmp_path: Path) -> dict[str, Any]:
    """The configuration of the page, with a token that exists."""
    [text] = [text for _, text in blocks(ROOT / "docs/metrics.md") if text.startswith("receivers:")]
    found: dict[str, Any] = yaml.safe_load(text)
    (tmp_path / "token").write_text("t0ken")
    [scrape] = found["receivers"]["prometheus"]["config"]["scrape_configs"]
    scrape["authorization"]["credentials_file"] = str(tmp_path / "token")
    return found


@with_promtool
def test_prometheus_accepts_the_scrapes_of_the_opentelemetry_collector(tmp_path: Path) -> None:
    scrapes = collector(tmp_path)["receivers"]["prometheus"]["config"]
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(scrapes))
    promtool("check", "config", str(tmp_path / "prometheus.yaml"))


@pytest.mark.skipif(COLLECTOR is None, reason="otelcol is not installed: the OpenTelemetry Collector")
def test_the_opentelemetry_collector_accepts_its_configuration(tmp_path: Path) -> None:
    assert COLLECTOR is not None
    file = tmp_path / "collector.yaml"
    file.write_text(yaml.safe_dump(collector(tmp_path)))
    done = subprocess.run([COLLECTOR, "validate", "--config", str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
