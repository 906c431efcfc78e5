"""kafka-configs, as users run it."""

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.process.proxy_process import ProxyProcess


class ConfigsTool:
    """kafka-configs of the cluster's own version, through the proxy."""

    def __init__(self, kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
        self._kafka = kafka
        self._proxy = proxy

    def __call__(self, *arguments: str, check: bool = True) -> str:
        """Return the output on both streams."""
        server = ("--bootstrap-server", self._proxy.bootstrap)
        done = self._kafka.run_tool("kafka-configs", *server, *arguments, timeout=120, check=check)
        return done.stdout + done.stderr

    def alter(self, *entity: str, add: str = "", delete: str = "", check: bool = True) -> str:
        change = [*(["--add-config", add] if add else []), *(["--delete-config", delete] if delete else [])]
        return self("--alter", *entity, *change, check=check)

    def describe(self, *entity: str) -> set[str]:
        """Return the lines of the output, each with its values sorted."""
        lines = self("--describe", *entity).splitlines()
        return {
            " are ".join([who, *sorted(what.split(", "))])
            for who, _, what in (x.partition(" are ") for x in lines)
        }
