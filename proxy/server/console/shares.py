"""The processes that share limits, and how they divide the limits in use.

    {"instances": [{"instance": "proxy-a", "processes": 1, "age_seconds": 0.2}],
     "degraded": false,
     "total": 1,
     "limits": [{"kind": "producer_byte_rate", "broker": 1, "entity": {"user": "alice"}, "limit": 1048576.0,
                 "shares": {"proxy-a": 786432.0, "proxy-b": 262144.0}}]}

Several live processes may have the name of one instance, for a while after a restart. `age_seconds` is the
time since the last report of any of them. `limits` has the limits of which a process uses more than a third
of its part; each process has an equal part of the others. If less than a limit was used in the last seconds,
its shares add up to more than the limit. `degraded` is true while this process does not share.
"""

from typing import Any, Final, Protocol

from proxy.admin.yielder import Yielder
from proxy.quota.engines import ALL_BROKERS
from proxy.telemetry.quota_rows import entity_of

MOST: Final = 200
"""Limits of one response."""
_NAMES: Final = 5
"""The names in a key: quota, user, client id, address, topic."""


class Shared(Protocol):
    """What is known of the processes that share; LimitSharing is one."""

    @property
    def degraded(self) -> bool:
        """Whether this process does not share."""

    def ages(self) -> dict[str, float]:
        """The seconds since the last report of each live process, by its name."""

    def hot_keys(self) -> list[str]:
        """The keys of the hot buckets; the one that was reported last comes first."""

    def shares(self, key: str) -> tuple[float, dict[str, float]] | None:
        """The limit of a hot bucket, and the share of each live process; None if it is cold."""


async def shares(sharing: Shared | None, words: str) -> dict[str, Any]:
    """The instances, and up to MOST limits whose quota and names contain all of these words."""
    if sharing is None:
        return {"instances": [], "degraded": False, "total": 0, "limits": []}
    wanted = words.lower().split()
    rows: list[dict[str, Any]] = []
    total = 0
    yielder = Yielder()
    for key in sharing.hot_keys():
        await yielder.step()
        try:
            row = read_key(key)
        except ValueError:
            continue  # A key of another version, or of another program.
        text = f"{row['kind']} {' '.join(f'{part} {name}' for part, name in row['entity'].items())}".lower()
        if not all(word in text for word in wanted):
            continue
        total += 1
        found = sharing.shares(key) if len(rows) < MOST else None
        if found is not None:
            limit, of_processes = found
            rows.append({**row, "limit": limit, "shares": _by_instance(of_processes)})
    return {"instances": _instances(sharing), "degraded": sharing.degraded, "total": total, "limits": rows}


def read_key(key: str) -> dict[str, Any]:
    """Return the quota, the entity and the broker of a key of `bucket_key`. Raises ValueError."""
    names: list[str] = []
    rest = key
    for _ in range(_NAMES):
        length, separator, rest = rest.partition(":")
        if not separator or not length.isdecimal() or int(length) > len(rest):
            raise ValueError(key)
        names.append(rest[: int(length)])
        rest = rest[int(length) :]
    quota, user, client_id, ip, topic = names
    partition, _, node_id = rest.partition("/")
    entity = entity_of(user, client_id, ip, topic, int(partition))
    broker = int(node_id)
    return {"kind": quota, "broker": None if broker == ALL_BROKERS else broker, "entity": entity}


def _instances(sharing: Shared) -> list[dict[str, Any]]:
    ages: dict[str, list[float]] = {}
    for process, age in sharing.ages().items():
        ages.setdefault(_instance(process), []).append(age)
    return [
        {
            "instance": instance,
            "processes": len(of_processes),
            "age_seconds": round(min(of_processes), 3),
        }
        for instance, of_processes in sorted(ages.items())
    ]


def _by_instance(of_processes: dict[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for process, share in of_processes.items():
        found[_instance(process)] = found.get(_instance(process), 0.0) + share
    return found


def _instance(process: str) -> str:
    return process.rpartition("/")[0]
