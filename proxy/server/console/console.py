"""Console: replies to the console's requests, in the process that has the quotas.

If the process has workers, the supervisor forwards the requests to one of them.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from proxy.admin.client_quotas import ClientQuotas
from proxy.errors import QuotaProxyError
from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import ANONYMOUS, Identity
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.quota.networks import canonical_address
from proxy.quota.quota import QuotaKey
from proxy.relay.budgets.list_turns import ListTurns
from proxy.server.console.changes import CLIENT_ID, InvalidChange, QuotaChanges, Topics, resource_of
from proxy.server.console.configured import configured
from proxy.server.console.explain import explain_client, explain_ip, explain_lists, explain_resource
from proxy.server.console.missing import note_of_missing, note_of_user
from proxy.server.console.shares import Shared, shares
from proxy.store.quota_store import Conflict, QuotaStore, StoreOff, StoreUnavailable
from proxy.telemetry.console import (
    CHANGE,
    CONFIGURED,
    EXPLAIN,
    OVERVIEW,
    SHARES,
    ConsoleReply,
    ConsoleRequest,
)
from proxy.telemetry.overview import Overview

log = logging.getLogger(__name__)
STATUS: Final[dict[type[QuotaProxyError], int]] = {
    InvalidChange: 400,
    Conflict: 409,
    StoreOff: 409,
    StoreUnavailable: 503,
}


class Console:
    """Explains, lists and changes the quotas of a store."""

    def __init__(
        self,
        *,
        store: QuotaStore,
        keys: Sequence[QuotaKey],
        rules: ConfigRules,
        clusters: Sequence[Topics],
        overview: Callable[[], Overview],
        list_turns: ListTurns,
        sharing: Shared | None = None,
        identifies_users: bool = True,
    ) -> None:
        """`keys` are those of client quotas, `clusters` those of which topics are requested; `sharing` is
        None if this process does not share limits. `identifies_users`: whether a listener has a principal.
        """
        self._store: Final = store
        self._keys: Final = list(keys)
        self._rules: Final = rules
        self._overview: Final = overview
        self._list_turns: Final = list_turns
        self._sharing: Final = sharing
        self._identifies_users: Final = identifies_users
        self._clusters: Final = list(clusters)
        self._changes: Final = QuotaChanges(store, ClientQuotas(store, self._keys), rules, clusters)

    async def reply(self, request: ConsoleRequest) -> ConsoleReply:
        """Reply with JSON."""
        try:
            return ConsoleReply(200, msgspec.json.encode(await self._reply(request)))
        except (InvalidChange, Conflict, StoreOff, StoreUnavailable) as error:
            return ConsoleReply(STATUS[type(error)], msgspec.json.encode({"error": str(error)}))

    async def _reply(self, request: ConsoleRequest) -> Any:
        if request.what == OVERVIEW:
            return {**self._overview(), "keys": self._names()}
        if request.what == CONFIGURED:
            return await configured(self._store, request.query.get("q", ""))
        if request.what == SHARES:
            return await shares(self._sharing, request.query.get("q", ""))
        if request.what == EXPLAIN:
            resource = _resource(request.query)
            if resource is not None:
                note = await note_of_missing(self._clusters, resource)
            else:
                note = note_of_user(request.query.get("user", ""), self._identifies_users)
            quotas = list(self._explain(request.query, resource))
            lists = explain_lists(self._list_turns, request.query)
            return {"quotas": quotas, "note": note, "lists": lists}
        assert request.what == CHANGE
        who = Identity(request.author, CLIENT_ID, request.address)
        await self._changes.make(request.body, who)
        log.info("quotas: %s at %s changed %s", request.author, request.address, _shown(request.body))
        return {"changed": True}

    def _names(self) -> dict[str, list[str]]:
        """The quotas that can be set, by the sort of entity."""
        return {
            "client": sorted(key.name for key in self._keys if not key.for_ip),
            "ip": sorted(key.name for key in self._keys if key.for_ip),
            TOPIC: sorted(self._rules.keys(TOPIC)),
            BROKER: sorted(self._rules.keys(BROKER)),
        }

    def _explain(self, query: dict[str, str], resource: ConfigResource | None) -> Any:
        if "ip" in query:
            try:
                address = canonical_address(query["ip"])
            except ValueError as error:
                raise InvalidChange(str(error)) from error
            return explain_ip(self._store, self._keys, address)
        if resource is not None:
            return explain_resource(self._store, self._rules, resource)
        if not query.keys() & {"user", "client-id"}:
            raise InvalidChange("expected user, client-id or both, or ip, topic or broker")
        client = (query.get("user", ANONYMOUS), query.get("address", ""))
        return explain_client(self._store, self._keys, client, query.get("client-id", ""))


def _resource(query: dict[str, str]) -> ConfigResource | None:
    """The topic or the broker of a query. Raises InvalidChange."""
    for kind in (TOPIC, BROKER):
        if kind in query and "ip" not in query:
            return resource_of(kind, query[kind] or DEFAULT_RESOURCE)
    return None


def _shown(body: bytes) -> str:
    """The change for the log; LineFormatter escapes control characters."""
    return body.decode(errors="replace")[:500]
