"""Readiness: what keeps clients from being served, and what else is wrong."""

import asyncio
import re
from types import SimpleNamespace
from typing import Any

import pytest

from proxy.server.admin_port.readiness import Readiness
from proxy.store.skipped_records import SkippedRecords


class Kit:
    """Every part is fine unless a test says otherwise."""

    def __init__(
        self, *, with_topic: bool = True, with_usage: bool = True, with_sharing: bool = True
    ) -> None:
        self.gateway = SimpleNamespace(found=[], wrong=[])
        self.cluster_ids = {"clients": "a1", "sasl": ""}
        self.gateway.problems = lambda: self.gateway.found
        self.gateway.warnings = lambda: self.gateway.wrong
        self.topic = SimpleNamespace(
            loaded=asyncio.Event(), problem="", write_problem="", skipped=SkippedRecords("quotas")
        )
        self.topic.loaded.set()
        self.certificates = SimpleNamespace(wrong=[])
        self.certificates.warnings = lambda: self.certificates.wrong
        self.reload = SimpleNamespace(problem="")
        self.usage = SimpleNamespace(problems=[])
        self.sharing = SimpleNamespace(problem="", wrong=[])
        self.sharing.warnings = lambda: self.sharing.wrong
        sharing: Any = self.sharing if with_sharing else None
        topic: Any = self.topic if with_topic else None
        usage: Any = self.usage if with_usage else None
        gateways: Any = [self.gateway]
        certificates: Any = self.certificates
        reload: Any = self.reload
        self.readiness = Readiness(
            gateways=gateways,
            cluster_ids=lambda: self.cluster_ids,
            topic=topic,
            certificates=certificates,
            reload=reload,
            usage=usage,
            sharing=sharing,
        )


@pytest.mark.parametrize("optional", [True, False])
def test_nothing_is_wrong(optional: bool) -> None:
    readiness = Kit(with_topic=optional, with_usage=optional, with_sharing=optional).readiness
    assert (readiness.problems(), readiness.warnings()) == ([], [])


def test_quotas_that_are_not_loaded_are_the_only_problem() -> None:
    kit = Kit()
    kit.topic.loaded.clear()
    kit.topic.problem = "no broker responds"
    kit.gateway.found = ["clients: not listening yet"]
    [problem] = kit.readiness.problems()
    assert "no broker responds" in problem
    assert kit.readiness.warnings() == []


def test_a_listener_s_problem() -> None:
    kit = Kit()
    kit.gateway.found = ["clients: not listening yet"]
    assert kit.readiness.problems() == ["clients: not listening yet"]


def test_listeners_of_different_clusters() -> None:
    kit = Kit()
    kit.cluster_ids = {"clients": "a1", "sasl": "a1"}
    assert kit.readiness.warnings() == []
    kit.cluster_ids = {"clients": "a1", "other": "b2"}
    [warning] = kit.readiness.warnings()
    assert "clients: a1, other: b2" in warning
    assert kit.readiness.problems() == []


def test_draining_is_a_problem() -> None:
    kit = Kit()
    kit.readiness.draining = True
    assert len(kit.readiness.problems()) == 1


def test_warnings_of_every_part() -> None:
    kit = Kit()
    kit.topic.problem = "TOPIC"
    kit.topic.skipped.skip(b"key", 5, "RECORD")
    kit.certificates.wrong = ["CERTIFICATE"]
    kit.gateway.wrong = ["LISTENER"]
    kit.reload.problem = "FILE"
    kit.usage.problems = ["USAGE"]
    warnings = kit.readiness.warnings()
    found = [word for warning in warnings for word in re.findall(r"\w+", warning) if word.isupper()]
    assert found == ["TOPIC", "RECORD", "CERTIFICATE", "LISTENER", "FILE", "USAGE"]
    assert kit.readiness.problems() == []


def test_sharing_that_is_degraded_is_a_warning() -> None:
    kit = Kit()
    kit.sharing.wrong = ["SHARING"]
    assert [warning.split()[-1] for warning in kit.readiness.warnings()] == ["SHARING"]
    assert kit.readiness.problems() == []


def test_joining_is_the_only_problem() -> None:
    kit = Kit()
    kit.sharing.problem = "JOINING"
    kit.gateway.found = ["clients: not listening yet"]
    [problem] = kit.readiness.problems()
    assert "JOINING" in problem
