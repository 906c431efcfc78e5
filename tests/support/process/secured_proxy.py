"""The proxy before a secured Kafka: a listener for each way to get in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.ports import free_port_range
from tests.support.kafka.secured_kafka import BARE, PASSWORDS, SASL, SECRET, TLS
from tests.support.process.certificates import Authority, Signed
from tests.support.process.proxy_process import ProxyProcess, Quotas

PORTS: Final = 12
ROOT: Final = "root"
"""The user who may change quotas by the configuration."""
ADMIN_TOKEN: Final = f"admin-{SECRET}"
LISTENERS: Final = ("certificates", "logins", "learning", "names", "unnamed")


class SecuredProxy:
    """`bootstrap` has HOST:PORT by listener:

    certificates  clients are named by their certificates
    logins        TLS, and clients are named by their logins; the proxy has its own, also for store and usage
    learning      no TLS; clients are named by their logins, and the proxy has none
    names         TLS, and one port for all brokers, which are told apart by their hosts
    unnamed       clients log in, and the settings do not say that this names them
    """

    def __init__(
        self,
        folder: Path,
        kafka: EmbeddedKafka,
        authority: Authority,
        quotas: Quotas = (),
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.certificate: Final[Signed] = authority.sign("proxy")
        first = free_port_range(PORTS * len(LISTENERS))
        self.ports: Final = {name: first + PORTS * place for place, name in enumerate(LISTENERS)}
        self.bootstrap: Final = {name: f"localhost:{port}" for name, port in self.ports.items()}
        own = authority.sign("proxy-client", "proxy")
        password = folder / "password"
        password.write_text(PASSWORDS["proxy"] + "\n")
        tls = {"certificate": self.certificate.certificate, "key": self.certificate.key}
        upstream_tls = {"ca": authority.ca, "server_name": "localhost"}
        sasl = {"mechanism": "SCRAM-SHA-512", "username": "proxy", "password_file": "password"}
        listeners: dict[str, Any] = {
            "logins": {
                "tls": tls,
                "principal": {"from": "sasl"},
                "upstream": {
                    "bootstrap": [f"127.0.0.1:{kafka.port(1, SASL)}"],
                    "tls": upstream_tls,
                    "sasl": sasl,
                },
            },
            "certificates": {
                "tls": {**tls, "client_ca": authority.ca, "client_auth": "required"},
                "principal": {"from": "tls", "rules": "RULE:^CN=([^,]+),.*$/$1/"},
                "upstream": {
                    "bootstrap": [f"127.0.0.1:{kafka.port(1, TLS)}"],
                    "tls": {**upstream_tls, "certificate": own.certificate, "key": own.key},
                },
            },
            "learning": {
                "principal": {"from": "sasl"},
                "upstream": {"bootstrap": [f"127.0.0.1:{kafka.port(1, BARE)}"]},
            },
        }
        whole = [
            {
                "name": name,
                "advertised_host": "localhost",
                "bootstrap_port": self.ports[name],
                "broker_port_base": self.ports[name] + 1,
                "broker_port_count": PORTS - 2,
                **keys,
            }
            for name, keys in listeners.items()
        ]
        hosts = {"bootstrap_host": "kafka.test", "broker_host": "broker-$(node_id).kafka.test"}
        names = {
            "name": "names",
            "sni": {"port": self.ports["names"], **hosts},
            "tls": tls,
            "upstream": {"bootstrap": [kafka.bootstrap]},
        }
        unnamed = {
            "name": "unnamed",
            "bootstrap_port": self.ports["unnamed"],
            "broker_port_base": self.ports["unnamed"] + 1,
            "broker_port_count": PORTS - 2,
            "upstream": {"bootstrap": [f"127.0.0.1:{kafka.port(1, BARE)}"], "sasl": sasl},
        }
        whole += [names, unnamed]
        (folder / "token").write_text(ADMIN_TOKEN)
        admin = {"token_file": "token"}
        settings = {
            "listeners": whole,
            "admin": admin,
            "quotas": {"changes": {"admins": [ROOT]}},
            **(settings or {}),
        }
        self.process: Final = ProxyProcess(folder, "unused:1", quotas, settings=settings)
