"""The Helm chart in a real Kubernetes API server, which checks every object: install, upgrade, uninstall.

No node and no controller runs, so a Deployment has no pods. The tests create one from its template, for the
checks of pods.
"""

import base64
import json
import os
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from proxy.demo.children import Children
from proxy.demo.ports import free_ports
from tests.support.waiting import wait_until

CHART: Final = Path(__file__).parents[3] / "deploy/helm/quota-proxy"
TOOLS: Final = ("helm", "etcd", "kube-apiserver")
MISSING: Final = [tool for tool in TOOLS if shutil.which(tool) is None]
START_SECONDS: Final = 180.0
TOKEN: Final = "t0ken"
RESTRICTED: Final = {"pod-security.kubernetes.io/enforce": "restricted"}
NAMES: Final = {"ServiceMonitor": "servicemonitors", "PrometheusRule": "prometheusrules"}
MONITORING: Final = "metrics.serviceMonitor.enabled=true,metrics.rules.enabled=true"
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not on the path: {', '.join(MISSING)}")


class Kubernetes:
    """An API server."""

    def __init__(self, port: int, kubeconfig: Path) -> None:
        self._url: Final = f"https://127.0.0.1:{port}"
        self._kubeconfig: Final = kubeconfig
        self._tls: Final = ssl.create_default_context()
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE

    def ask(self, path: str, body: object = None) -> dict[str, Any]:
        """GET, or POST a body; the object. Raises HTTPError."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers)
        with urllib.request.urlopen(request, context=self._tls, timeout=30) as response:
            found: dict[str, Any] = json.load(response)
            return found

    def is_ready(self) -> bool:
        try:
            self.ask("/api/v1/namespaces/default")
        except (OSError, ValueError):
            return False
        return True

    def helm(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "KUBECONFIG": str(self._kubeconfig)}
        return subprocess.run(
            ["helm", *arguments], env=environment, capture_output=True, text=True, check=False
        )

    def install(self, namespace: str, *arguments: str) -> str:
        """Install or upgrade; what helm prints."""
        options = ("upgrade", "--install", "quota-proxy", str(CHART), "--namespace", namespace)
        done = self.helm(*options, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def deployment(self, namespace: str) -> dict[str, Any]:
        return self.ask(f"/apis/apps/v1/namespaces/{namespace}/deployments/quota-proxy")

    def make_namespace(self, name: str) -> str:
        metadata = {"name": name, "labels": RESTRICTED}
        self.ask("/api/v1/namespaces", {"metadata": metadata})
        self.ask(f"/api/v1/namespaces/{name}/secrets", {"metadata": {"name": "quota-proxy-token"}})
        return name


@pytest.fixture(scope="module")
def kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubernetes]:
    folder = tmp_path_factory.mktemp("kubernetes")
    etcd, peer, port = free_ports(3)
    key = folder / "service-account.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    tokens = folder / "tokens.csv"
    tokens.write_text(f"{TOKEN},admin,admin,system:masters\n")
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(_kubeconfig(port)))
    here = f"http://127.0.0.1:{etcd}"
    commands = [
        [
            *("etcd", "--data-dir", str(folder / "etcd"), "--listen-peer-urls", f"http://127.0.0.1:{peer}"),
            *("--listen-client-urls", here, "--advertise-client-urls", here, "--unsafe-no-fsync"),
        ],
        [
            *(
                "kube-apiserver",
                f"--etcd-servers={here}",
                f"--secure-port={port}",
                "--authorization-mode=RBAC",
            ),
            *("--bind-address=127.0.0.1", f"--cert-dir={folder}", f"--token-auth-file={tokens}"),
            *("--service-cluster-ip-range=10.0.0.0/24", "--service-account-issuer=https://localhost"),
            *(f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}"),
        ],
    ]
    children = Children()
    try:
        for command in commands:
            with (folder / f"{command[0]}.log").open("wb") as log:
                children.spawn(command, stdout=log, stderr=subprocess.STDOUT)
        found = Kubernetes(port, kubeconfig)
        wait_until(found.is_ready, f"the API server; logs in {folder}", START_SECONDS)
        yield found
    finally:
        children.kill_all()


def _kubeconfig(port: int) -> dict[str, Any]:
    cluster = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": {"token": TOKEN}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }


def _definition(kind: str, plural: str) -> dict[str, Any]:
    """A resource of the Prometheus operator, with any fields."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }


@pytest.mark.parametrize("case", sorted(path.name for path in (CHART / "ci").glob("*-values.yaml")))
def test_example_is_installed_upgraded_and_removed(kubernetes: Kubernetes, case: str) -> None:
    namespace = kubernetes.make_namespace(case.removesuffix("-values.yaml"))
    # The operator's resources are another test's.
    options = ("--values", str(CHART / "ci" / case), "--set", "metrics.serviceMonitor.enabled=false")
    kubernetes.install(namespace, *options)
    first = kubernetes.deployment(namespace)
    kubernetes.install(namespace, *options)
    assert kubernetes.deployment(namespace)["metadata"]["generation"] == first["metadata"]["generation"]
    template = first["spec"]["template"]
    template["metadata"]["name"] = "quota-proxy-pod"
    pod = kubernetes.ask(f"/api/v1/namespaces/{namespace}/pods", template)
    assert pod["spec"]["containers"][0]["name"] == "quota-proxy"
    assert kubernetes.helm("uninstall", "quota-proxy", "--namespace", namespace).returncode == 0
    left = [
        each["metadata"]["name"]
        for kind in ("services", "configmaps", "secrets", "serviceaccounts")
        for each in kubernetes.ask(f"/api/v1/namespaces/{namespace}/{kind}")["items"]
        if each["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") == "Helm"
    ]
    assert left == []


def test_an_upgrade_keeps_the_generated_token(kubernetes: Kubernetes) -> None:
    namespace = kubernetes.make_namespace("token")

    def token() -> bytes:
        secret = kubernetes.ask(f"/api/v1/namespaces/{namespace}/secrets/quota-proxy-admin")
        return base64.b64decode(secret["data"]["token"])

    kubernetes.install(namespace)
    generated = token()
    assert len(generated) == 40
    kubernetes.install(namespace, "--set", "replicas=3")
    assert token() == generated
    assert kubernetes.deployment(namespace)["spec"]["replicas"] == 3
    kubernetes.install(namespace, "--set", "admin.token=mine")
    assert token() == b"mine"


def test_a_change_of_quotas_does_not_replace_pods(kubernetes: Kubernetes) -> None:
    namespace = kubernetes.make_namespace("quotas")
    kubernetes.install(namespace)
    before = kubernetes.deployment(namespace)["metadata"]["generation"]
    kubernetes.install(namespace, "--set", "config.quotas.burst_seconds=2")
    assert kubernetes.deployment(namespace)["metadata"]["generation"] == before
    config = kubernetes.ask(f"/api/v1/namespaces/{namespace}/configmaps/quota-proxy")["data"]
    assert yaml.safe_load(config["quota-proxy.yaml"])["quotas"]["burst_seconds"] == 2
    kubernetes.install(namespace, "--set", "config.cluster=other")
    assert kubernetes.deployment(namespace)["metadata"]["generation"] == before + 1


def test_objects_of_the_prometheus_operator(kubernetes: Kubernetes) -> None:
    """Without its definitions, helm installs nothing."""
    namespace = kubernetes.make_namespace("operator")
    options = ("--namespace", namespace, "--set", MONITORING)
    done = kubernetes.helm("install", "quota-proxy", str(CHART), *options)
    assert done.returncode != 0
    assert "PrometheusRule" in done.stderr
    for kind, plural in NAMES.items():
        kubernetes.ask("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _definition(kind, plural))
    wait_until(lambda: len(_served(kubernetes)) == len(NAMES), "the operator's resources", START_SECONDS)
    kubernetes.install(namespace, "--set", MONITORING)
    path = f"/apis/monitoring.coreos.com/v1/namespaces/{namespace}/servicemonitors/quota-proxy"
    assert kubernetes.ask(path)["spec"]["endpoints"][0]["port"] == "admin"


def _served(kubernetes: Kubernetes) -> list[str]:
    try:
        resources = kubernetes.ask("/apis/monitoring.coreos.com/v1")["resources"]
    except urllib.error.HTTPError:
        return []
    return [each["kind"] for each in resources]
