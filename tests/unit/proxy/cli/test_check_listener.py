"""What `check` says about the listeners of a file."""

from pathlib import Path

from proxy.cli.check import describe
from tests.support.process.settings import configuration

FILE = """
listeners:
  - {name: plain, upstream: {bootstrap: ['k:9092']}, bootstrap_port: 1000, broker_port_base: 1100,
     proxy_protocol: {senders: [10.0.0.1, 10.1.0.0/16]}}
  - name: mutual
    bootstrap_port: 2000
    broker_port_base: 2100
    tls: {certificate: p.pem, key: p.key, client_ca: ca.pem, client_auth: required}
    principal: {from: tls, rules: "RULE:^CN=(.*)$/$1/"}
    upstream: {bootstrap: ['k:9093'], tls: {certificate: c.pem, key: c.key}}
  - name: logins
    bootstrap_port: 3000
    broker_port_base: 3100
    principal: {from: sasl}
    upstream: {bootstrap: ['k:9094']}
  - name: hosts
    sni: {port: 4000, bootstrap_host: k.example, broker_host: b-$(node_id).example}
    tls: {certificate: p.pem, key: p.key, client_ca: ca.pem, client_auth: requested}
    principal: {from: tls}
    upstream:
      bootstrap: ['k:9095']
      tls: {}
      sasl: {mechanism: PLAIN, username: proxy, password_env: SECRET}
quotas: {changes: {admins: [root], without_authorizer: nobody}}
"""


def explained(tmp_path: Path) -> dict[str, dict[str, str]]:
    """By listener: what is said, by its heading."""
    told: dict[str, dict[str, str]] = {}
    for line in describe(configuration(tmp_path, FILE)):
        if line.startswith("listener"):
            about = told.setdefault(line.split()[1].rstrip(":"), {"": line})
        elif line.startswith("  "):
            heading, _, text = line.strip().partition(" ")
            about[heading] = text.strip().replace(str(tmp_path) + "/", "")
    return told


def test_each_listener(tmp_path: Path) -> None:
    told = explained(tmp_path)
    plain, mutual, logins, hosts = (told[name] for name in ("plain", "mutual", "logins", "hosts"))
    assert "10.0.0.1, 10.1.0.0/16" in plain["address"]
    assert "address" not in mutual
    assert plain["clients"] == "any client; not encrypted"
    assert plain["users"] == "ANONYMOUS for every client"
    assert plain["quotas"].startswith("those of user ANONYMOUS, ")
    assert plain["changes"] == "clients that the cluster's authorizer allows; without an authorizer, root"
    assert plain["proxy"] == "connects without a login; not encrypted"
    assert mutual["clients"] == "any client with a certificate of ca.pem; TLS"
    assert mutual["users"] == "from the certificate, RULE:^CN=(.*)$/$1/"
    assert mutual["quotas"].startswith("those of the user, ")
    assert mutual["changes"].startswith("root: ")
    assert mutual["proxy"] == "connects without a login; TLS with c.pem"
    assert logins["clients"] == "any client that logs in to the broker; not encrypted"
    assert "OAUTHBEARER's claim sub); rejected" in logins["users"]
    assert logins["proxy"].startswith("connects without a login, and learns brokers from ")
    assert hosts["clients"] == "any client; TLS"
    assert hosts["users"] == "from the certificate, DEFAULT; ANONYMOUS without one"
    assert hosts["proxy"] == "logs in as proxy by PLAIN; TLS"
    assert "brokers b-$(node_id).example at the same port, advertised as k.example" in hosts[""]
