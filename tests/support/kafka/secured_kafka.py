"""A real Kafka with an authorizer, and a listener for each kind of authentication."""

import base64
import json
import time
from collections.abc import Mapping
from typing import Any, Final

import confluent_kafka.admin

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.tool_server import ServedKafka
from tests.support.process.certificates import Authority

PASSWORDS: Final = {
    "admin": "admin-secret-Zq81",
    "alice": "alice-secret-Zq81",
    "bob": "bob-secret-Zq81",
    "proxy": "proxy-secret-Zq81",
}
admin: Final[Any] = confluent_kafka.admin
SECRET: Final = "secret-Zq81"
"""A part of every password, so that tests can search for it."""
SASL: Final = "SASLTLS"
TLS: Final = "MUTUAL"
BARE: Final = "SASLBARE"
_SECURITY: Final = "org.apache.kafka.common.security."
_LISTENERS: Final = {SASL: "SASL_SSL", TLS: "SSL", BARE: "SASL_PLAINTEXT"}
_SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def secured_kafka(authority: Authority) -> EmbeddedKafka:
    """Return a broker that is not started yet. Its super users are admin, proxy, and ANONYMOUS, who connects
    without TLS.
    """
    broker = authority.sign("broker", "broker")
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS;User:admin;User:proxy",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": broker.both,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.ca,
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+),.*$/$1/",
        f"listener.name.{TLS.lower()}.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "connections.max.reauth.ms": "3600000",
        "delegation.token.secret.key": SECRET,
        # With 100 ms instead of 1 s, a delayed rejection would not be noticed.
        "connection.failed.authentication.delay.ms": "300",
    }
    for name in (SASL, BARE):
        properties.update(_mechanisms(f"listener.name.{name.lower()}"))
    return ServedKafka(properties=properties, listeners=_LISTENERS)


def _mechanisms(listener: str) -> dict[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    bearer = f'{_SECURITY}oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    return {
        f"{listener}.plain.sasl.jaas.config": f"{_SECURITY}plain.PlainLoginModule required {users};",
        **{
            f"{listener}.{mechanism.lower()}.sasl.jaas.config": f"{_SECURITY}scram.ScramLoginModule required;"
            for mechanism in _SCRAM
        },
        f"{listener}.oauthbearer.sasl.jaas.config": bearer,
    }


def token(user: str, seconds: float = 3600) -> str:
    """Return an unsecured token, which Kafka's handlers for tests accept."""
    now = time.time()
    parts: list[Mapping[str, Any]] = [
        {"alg": "none"},
        {"sub": user, "iat": now - 1, "exp": now + seconds, "jti": SECRET},
    ]
    return (
        ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
        + "."
    )


def set_up(kafka: EmbeddedKafka) -> None:
    """Create the SCRAM users and the ACLs: only super users may alter the cluster, and everybody may use
    topics.
    """
    client = admin.AdminClient({"bootstrap.servers": kafka.bootstrap})
    waiting: list[Any] = []
    for mechanism in _SCRAM:
        info = admin.ScramCredentialInfo(getattr(admin.ScramMechanism, mechanism.replace("-", "_")), 4096)
        wanted = [
            admin.UserScramCredentialUpsertion(name, info, password.encode())
            for name, password in PASSWORDS.items()
        ]
        waiting += client.alter_user_scram_credentials(wanted).values()
    rule = admin.AclBinding(
        admin.ResourceType.BROKER,
        "kafka-cluster",
        admin.ResourcePatternType.LITERAL,
        "User:admin",
        "*",
        admin.AclOperation.ALL,
        admin.AclPermissionType.ALLOW,
    )
    waiting += client.create_acls([rule]).values()
    for future in waiting:
        future.result(30)
