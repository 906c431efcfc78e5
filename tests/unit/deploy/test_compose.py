"""The compose files agree with each other: names, ports, addresses and drain time."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from proxy.config.ports import broker_ports
from proxy.config.settings import Settings
from tests.support.process.settings import load_settings

DEPLOY = Path(__file__).parents[3] / "deploy"
COMPOSE = DEPLOY / "compose"
ALERTS = DEPLOY / "prometheus/alerts.yaml"
DASHBOARD = DEPLOY / "grafana/quota-proxy.json"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((COMPOSE / "docker-compose.yaml").read_text())["services"]
    return services


@pytest.fixture(scope="module")
def kafka(services: dict[str, Any]) -> dict[str, Any]:
    environment: dict[str, Any] = services["kafka"]["environment"]
    return environment


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load_settings(COMPOSE / "quota-proxy.yaml")


def published(service: dict[str, Any]) -> dict[int, tuple[str, int]]:
    """Map ports in the container to (address, port) on the host."""
    ports = [str(entry).split(":") for entry in service["ports"]]
    return {int(inside): (address, int(outside)) for address, outside, inside in ports}


def mounts(service: dict[str, Any]) -> dict[str, Path]:
    """Map paths in the container to files of the repository."""
    volumes = [str(volume).split(":") for volume in service["volumes"]]
    return {inside: (COMPOSE / file).resolve() for file, inside, _ in volumes}


def listener_ports(listeners: str) -> dict[str, str]:
    """Parse Kafka's listeners, `NAME://host:port,...`, to a mapping from name to host:port."""
    return dict(entry.split("://") for entry in listeners.split(","))


def test_proxy_finds_the_broker_where_it_advertises_itself(kafka: dict[str, Any], settings: Settings) -> None:
    [listener] = settings.listeners
    advertised = listener_ports(kafka["KAFKA_ADVERTISED_LISTENERS"])
    assert listener.upstream.bootstrap == (advertised["PLAINTEXT"],)
    host, port = advertised["PLAINTEXT"].split(":")
    assert host == "kafka"
    assert listener_ports(kafka["KAFKA_LISTENERS"])["PLAINTEXT"] == f":{port}"


def test_broker_is_its_own_controller(kafka: dict[str, Any]) -> None:
    node, _, address = str(kafka["KAFKA_CONTROLLER_QUORUM_VOTERS"]).partition("@")
    assert node == str(kafka["KAFKA_NODE_ID"])
    port = listener_ports(kafka["KAFKA_LISTENERS"])[kafka["KAFKA_CONTROLLER_LISTENER_NAMES"]]
    assert address == f"kafka{port}"
    protocols = kafka["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")
    assert {entry.split(":")[0] for entry in protocols} == set(listener_ports(kafka["KAFKA_LISTENERS"]))


def test_health_check_asks_the_brokers_listener(services: dict[str, Any], settings: Settings) -> None:
    assert services["kafka"]["healthcheck"]["test"][-1] == settings.listeners[0].upstream.bootstrap[0]
    assert services["quota-proxy"]["depends_on"] == {"kafka": {"condition": "service_healthy"}}


def test_every_port_of_the_proxy_is_published_under_its_own_number(
    services: dict[str, Any], kafka: dict[str, Any], settings: Settings
) -> None:
    [listener] = settings.listeners
    broker = broker_ports(settings, listener)[int(kafka["KAFKA_NODE_ID"])]
    prometheus, grafana = 9090, 3000
    expected = {port: ("127.0.0.1", port) for port in (listener.bootstrap_port, broker, prometheus, grafana)}
    assert published(services["quota-proxy"]) == expected


def test_clients_on_the_machine_and_in_the_namespace_reach_what_is_advertised(
    services: dict[str, Any], settings: Settings
) -> None:
    [listener] = settings.listeners
    assert (listener.bind, listener.advertised_host) == ("0.0.0.0", "localhost")
    assert services["tools"]["network_mode"] == "service:quota-proxy"


def test_prometheus_scrapes_the_admin_port(services: dict[str, Any], settings: Settings) -> None:
    mounted = mounts(services["prometheus"])
    scrape = yaml.safe_load(mounted["/etc/prometheus/prometheus.yml"].read_text())
    [rules] = scrape["rule_files"]
    assert mounted[f"/etc/prometheus/{rules}"] == ALERTS
    [target] = scrape["scrape_configs"][0]["static_configs"][0]["targets"]
    host, port = target.split(":")
    assert (settings.admin.bind, settings.admin.port) == ("127.0.0.1", int(port))
    assert host == "localhost"
    assert services["prometheus"]["network_mode"] == "service:quota-proxy"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_prometheus_takes_its_files(services: dict[str, Any], tmp_path: Path) -> None:
    for place, file in mounts(services["prometheus"]).items():
        shutil.copy(file, tmp_path / Path(place).name)
    done = subprocess.run(["promtool", "check", "config", str(tmp_path / "prometheus.yml")], check=False)
    assert done.returncode == 0


def test_grafana_has_the_dashboard_and_reads_prometheus(services: dict[str, Any]) -> None:
    grafana = services["grafana"]
    mounted = mounts(grafana)
    provisioning = "/etc/grafana/provisioning"
    sources = yaml.safe_load(mounted[f"{provisioning}/datasources/quota-proxy.yaml"].read_text())
    [source] = sources["datasources"]
    # The dashboard takes the default source of this type.
    dashboard = json.loads(DASHBOARD.read_text())
    [variable] = [each for each in dashboard["templating"]["list"] if each["type"] == "datasource"]
    assert (source["type"], source["isDefault"]) == (variable["query"], True)
    assert source["url"] == "http://localhost:9090"
    assert grafana["network_mode"] == services["prometheus"]["network_mode"]
    providers = yaml.safe_load(mounted[f"{provisioning}/dashboards/quota-proxy.yaml"].read_text())
    [provider] = providers["providers"]
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert mounted[home] == DASHBOARD
    assert str(Path(home).parent) == provider["options"]["path"]


def test_mounted_files_exist(services: dict[str, Any]) -> None:
    for service in services.values():
        for mount in service.get("volumes", []):
            assert (COMPOSE / mount.split(":")[0]).is_file()
    [mount] = services["quota-proxy"]["volumes"]
    assert mount.split(":")[1] == "/etc/quota-proxy/quota-proxy.yaml"
    assert (COMPOSE / services["quota-proxy"]["build"] / "Dockerfile").is_file()


def test_stop_waits_for_the_drain(services: dict[str, Any], settings: Settings) -> None:
    assert int(services["quota-proxy"]["stop_grace_period"].removesuffix("s")) > settings.limits.drain_seconds


def test_file_limit_allows_max_connections(services: dict[str, Any], settings: Settings) -> None:
    assert services["quota-proxy"]["ulimits"]["nofile"] > 2 * settings.limits.max_connections


def test_tools_have_the_brokers_version(services: dict[str, Any]) -> None:
    assert services["tools"]["image"] == services["kafka"]["image"]
