"""`python -m tests.interop.kerberos`: a client that logs in with Kerberos, through the proxy, on a Kafka.

A real KDC (krb5-kdc of MIT) has the realm EXAMPLE.COM. The broker has the key of the proxy's host, and the
proxy has `principal: {from: sasl, unreadable: kerberos}` (docs/providers.md). Java's client creates a topic,
produces under the quota of the user `kerberos`, and reads the records back. A second listener has no
`unreadable`, and rejects the login. Exit status 1 if any of this fails, or if there is no KDC.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from proxy.demo.children import Children
from proxy.demo.embedded_kafka import EmbeddedKafka
from proxy.demo.embedded_proxy import EmbeddedProxy
from proxy.demo.ports import free_port_range, free_ports
from tests.support.waiting import wait_until

TOOLS: Final = ("krb5kdc", "kadmin.local", "kdb5_util")
FOLDERS: Final = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
REALM: Final = "EXAMPLE.COM"
HOST: Final = "localhost"
SERVICE: Final = f"kafka/{HOST}"
LISTENER: Final = "KRB"
QUOTA: Final = 100_000
RECORDS: Final = 800
SIZE: Final = 1000
MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"


class Kdc:
    """The realm, its principals and their keys, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder
        (self._port,) = free_ports(1)
        self.client_settings: Final = folder / "krb5.conf"
        self.client_settings.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n udp_preference_limit = 1\n rdns = false\n"
            f" dns_canonicalize_hostname = false\n[realms]\n {REALM} = {{\n"
            f"  kdc = 127.0.0.1:{self._port}\n }}\n"
        )
        (folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{self._port}\n kdc_tcp_listen = 127.0.0.1:{self._port}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {folder}/principal\n"
            f"  key_stash_file = {folder}/stash\n }}\n"
        )
        self._files: Final = {
            "KRB5_CONFIG": str(self.client_settings),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
        }

    def start(self, children: Children) -> None:
        """Create the database, and serve it as a child."""
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "a master key")
        settings = [f"{name}={value}" for name, value in self._files.items()]
        command = ["env", *settings, str(shutil.which("krb5kdc", path=FOLDERS)), "-n"]
        with (self._folder / "kdc.log").open("wb") as log:
            children.spawn(command, stdout=log, stderr=subprocess.STDOUT)
        wait_until(lambda: "starting" in (self._folder / "kdc.log").read_text(), "the KDC")

    def jaas(self, principal: str) -> str:
        """Add the principal; return the configuration of a login with its key."""
        keytab = self._folder / f"{principal.replace('/', '-')}.keytab"
        self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        self._run("kadmin.local", "-q", f"ktadd -k {keytab} {principal}")
        login = f'keyTab="{keytab}" principal="{principal}@{REALM}"'
        return f"{MODULE} required useKeyTab=true storeKey=true {login};"

    def _run(self, *command: str) -> None:
        environment = {**os.environ, "PATH": FOLDERS, **self._files}
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def listener(name: str, upstream: int, **principal: str) -> tuple[dict[str, object], str]:
    """A listener of the proxy for logins, and its address."""
    first = free_port_range(11)
    settings = {
        "name": name,
        "advertised_host": HOST,
        "bootstrap_port": first,
        "broker_port_base": first + 1,
        "broker_port_count": 10,
        "principal": {"from": "sasl", **principal},
        "upstream": {"bootstrap": [f"127.0.0.1:{upstream}"]},
    }
    return settings, f"{HOST}:{first}"


def run(folder: Path, kafka: EmbeddedKafka, client: Path) -> None:
    """Let the client work through the proxy. Raises AssertionError."""
    accepting, bootstrap = listener("kerberos", kafka.port(1, LISTENER), unreadable="kerberos")
    rejecting, rejected = listener("strict", kafka.port(1, LISTENER))
    limits = [{"entity": {"user": "kerberos"}, "producer_byte_rate": QUOTA}]
    options = ("--command-config", str(client))
    with EmbeddedProxy(kafka.bootstrap, folder, limits, [accepting, rejecting]) as proxy:
        kafka.run_tool(
            "kafka-topics", "--bootstrap-server", bootstrap, *options, "--create", "--topic", "tickets"
        )
        load = ("--num-records", str(RECORDS), "--record-size", str(SIZE), "--throughput", "-1")
        started = time.monotonic()
        kafka.run_tool(
            "kafka-producer-perf-test", "--bootstrap-server", bootstrap, *options, "--topic", "tickets", *load
        )
        seconds = time.monotonic() - started
        [bucket] = [each for each in proxy.quotas() if each["entity"] == {"user": "kerberos"}]
        waited = bucket["throttle_seconds"]
        print(f"{RECORDS * SIZE} bytes at {QUOTA} bytes/s: {seconds:.1f} s, throttled for {waited:.1f} s")
        assert seconds > RECORDS * SIZE / QUOTA - 1.5
        assert bucket["throttled_requests"] > 0
        read = kafka.run_tool(
            "kafka-console-consumer", "--bootstrap-server", bootstrap, *options, "--topic", "tickets",
            "--from-beginning", "--max-messages", str(RECORDS),
        )  # fmt: skip
        assert [len(line) for line in read.stdout.splitlines()] == [SIZE] * RECORDS
        print("all records were read")
        done = kafka.run_tool("kafka-topics", "--bootstrap-server", rejected, *options, "--list", check=False)
        assert done.returncode != 0
        assert "principal.unreadable" in proxy.log.read_text(), done.stderr
        print("without principal.unreadable, the login is rejected")


def main() -> int:
    if missing := [tool for tool in TOOLS if shutil.which(tool, path=FOLDERS) is None]:
        print(f"not installed: {', '.join(missing)} (Debian: krb5-kdc)", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder, children = Path(name), Children()
        try:
            kdc = Kdc(folder)
            kdc.start(children)
            client = folder / "client.properties"
            client.write_text(
                "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
                f"sasl.jaas.config={kdc.jaas('alice')}\n"
            )
            # For the brokers and the tools.
            os.environ["JAVA_TOOL_OPTIONS"] = f"-Djava.security.krb5.conf={kdc.client_settings}"
            properties = {
                "sasl.enabled.mechanisms": "GSSAPI",
                "sasl.kerberos.service.name": "kafka",
                f"listener.name.{LISTENER.lower()}.gssapi.sasl.jaas.config": kdc.jaas(SERVICE),
            }
            with EmbeddedKafka(properties=properties, listeners={LISTENER: "SASL_PLAINTEXT"}) as kafka:
                run(folder, kafka, client)
        finally:
            children.kill_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
