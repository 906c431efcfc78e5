"""The Helm chart: its renderings are those in tests/unit/deploy/helm, Kubernetes knows every field in them,
and the proxy takes their configuration.

`HELM_GOLDEN=1` with helm on the path writes the renderings again.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from proxy.config.ports import broker_ports
from proxy.config.settings import Settings
from tests.support.process.settings import load_settings

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy/helm/quota-proxy"
GOLDEN = Path(__file__).parent / "helm"
CASES = sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml"))
HELM = shutil.which("helm")
ADMIN_PORT = 9644
needs_helm = pytest.mark.skipif(
    HELM is None, reason="helm is not installed: go install helm.sh/helm/v3/cmd/helm@latest builds it"
)


def helm(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert HELM is not None
    # A helm that `go install` has built takes itself for one of a very old Kubernetes.
    return subprocess.run(
        [HELM, command, *arguments, "--kube-version", "1.30.0"], capture_output=True, text=True, check=False
    )


def rendered(*arguments: str) -> subprocess.CompletedProcess[str]:
    return helm("template", "quota-proxy", str(CHART), "--namespace", "kafka", *arguments)


def golden(case: str) -> list[dict[str, Any]]:
    return [found for found in yaml.safe_load_all((GOLDEN / f"{case}.yaml").read_text()) if found]


def of_kind(case: str, kind: str, name: str = "quota-proxy") -> dict[str, Any]:
    [found] = [each for each in golden(case) if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def settings_of(case: str, tmp_path: Path) -> Settings:
    """The settings of a rendering's ConfigMap, checked as `quota-proxy check` does, without opening files."""
    file = tmp_path / "quota-proxy.yaml"
    file.write_text(of_kind(case, "ConfigMap")["data"]["quota-proxy.yaml"])
    return load_settings(file)


@needs_helm
@pytest.mark.parametrize("case", CASES)
def test_rendering_is_the_golden_one(case: str) -> None:
    done = rendered("--values", str(CHART / f"ci/{case}-values.yaml"))
    assert done.returncode == 0, done.stderr
    if os.environ.get("HELM_GOLDEN"):
        (GOLDEN / f"{case}.yaml").write_text(done.stdout)
    assert done.stdout == (GOLDEN / f"{case}.yaml").read_text(), "HELM_GOLDEN=1 writes it again"


@needs_helm
@pytest.mark.parametrize(
    "wrong",
    [
        "replicas=0",
        "servce.type=NodePort",
        "config.listeners[0].bind=127.0.0.1",
        "brokerIds[0]=a",
        "config.admin.tls.client_auth=required",
    ],
)
def test_a_mistake_is_rejected(wrong: str) -> None:
    assert rendered().returncode == 0
    assert rendered("--set", wrong).returncode != 0


@needs_helm
def test_alerts_and_dashboard_are_those_of_this_repository() -> None:
    done = rendered("--set", "metrics.rules.enabled=true,metrics.dashboard.enabled=true")
    by_kind = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(done.stdout)}
    rules = by_kind["PrometheusRule", "quota-proxy"]["spec"]
    assert rules == yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())
    dashboard = by_kind["ConfigMap", "quota-proxy-dashboard"]["data"]["quota-proxy.json"]
    assert json.loads(dashboard) == json.loads((ROOT / "deploy/grafana/quota-proxy.json").read_text())


@pytest.mark.parametrize("case", ["nodeport", "pinned"])
def test_the_scraped_job_is_the_one_of_the_alerts(case: str) -> None:
    monitor = of_kind(case, "ServiceMonitor")["spec"]
    labels = of_kind(case, "Service", "quota-proxy-admin")["metadata"]["labels"]
    assert monitor["selector"]["matchLabels"].items() <= labels.items()
    jobs = set(re.findall(r'job="([^"]*)"', (ROOT / "deploy/prometheus/alerts.yaml").read_text()))
    assert jobs == {labels[monitor["jobLabel"]]}


@needs_helm
def test_quotas_are_loaded_again_and_other_keys_replace_the_pods() -> None:
    def annotation(*values: str) -> str:
        arguments = [part for value in values for part in ("--set", value)]
        objects = yaml.safe_load_all(rendered(*arguments).stdout)
        [deployment] = [each for each in objects if each["kind"] == "Deployment"]
        found: str = deployment["spec"]["template"]["metadata"]["annotations"]["quota-proxy/config"]
        return found

    plain = annotation()
    assert annotation("config.quotas.burst_seconds=2") == plain
    changed = ("config.quotas.store=none", "config.quotas.replication.enforce=broker", "config.cluster=other")
    assert len({plain, *map(annotation, changed)}) == 4


@pytest.mark.parametrize("case", CASES)
def test_kubernetes_knows_every_field(case: str) -> None:
    validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed (dependency group dev)"
    )
    for each in golden(case):
        if "coreos.com" not in each["apiVersion"]:
            validate.validate(each, validate.latest_version(), strict=True)


@pytest.mark.parametrize("case", CASES)
def test_the_proxy_takes_the_configuration(case: str, tmp_path: Path) -> None:
    settings = settings_of(case, tmp_path)
    pod = of_kind(case, "Deployment")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    limits = settings.limits
    assert pod["terminationGracePeriodSeconds"] >= limits.shutdown_delay_seconds + limits.drain_seconds + 5
    assert [port["containerPort"] for port in container["ports"] if port.get("name") == "admin"] == [
        ADMIN_PORT
    ]
    assert settings.admin.port == ADMIN_PORT
    mounted = tuple(mount["mountPath"] for mount in container["volumeMounts"])
    files = [settings.admin.token_file, *(each.tls.certificate for each in settings.listeners if each.tls)]
    assert all(str(file).startswith(mounted) for file in files)


@pytest.mark.parametrize("case", CASES)
def test_the_service_has_the_ports_that_clients_are_told(case: str, tmp_path: Path) -> None:
    settings = settings_of(case, tmp_path)
    service = of_kind(case, "Service")["spec"]
    on_nodes = service["type"] == "NodePort"
    for listener in settings.listeners:
        outside = {
            port["nodePort"] if on_nodes else port["port"]: port["targetPort"]
            for port in service["ports"]
            if port["name"].partition("-")[0] == listener.name
        }
        if listener.sni is not None:
            assert outside == {listener.sni.advertised_port: listener.sni.port}
            continue
        ports = broker_ports(settings, listener)
        base = listener.advertised_broker_port_base or listener.broker_port_base
        brokers = {near: far for near, far in outside.items() if far in ports}
        others = [far for far in outside.values() if far not in ports]
        assert others == ([] if listener.replication else [listener.bootstrap_port])
        assert len(brokers) >= 2
        assert all(near - base == far - ports[0] for near, far in brokers.items())
        # Brokers of the cluster dial the addresses that they advertise themselves.
        assert listener.advertised_host not in ("", "0.0.0.0")


@pytest.mark.parametrize("case", CASES)
def test_pods_are_confined(case: str) -> None:
    pod = of_kind(case, "Deployment")["spec"]["template"]["spec"]
    assert (pod["securityContext"]["runAsNonRoot"], pod["automountServiceAccountToken"]) == (True, False)
    confined = pod["containers"][0]["securityContext"]
    assert confined == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_chart_s_own_configuration_is_valid(tmp_path: Path) -> None:
    config = yaml.safe_load((CHART / "values.yaml").read_text())["config"]
    config["listeners"][0]["advertised_host"] = "proxy"
    (tmp_path / "quota-proxy.yaml").write_text(yaml.safe_dump(config))
    load_settings(tmp_path / "quota-proxy.yaml")
