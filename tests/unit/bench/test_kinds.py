"""Each row enforces one kind more, and shows what that kind costs."""

from pathlib import Path

import yaml

from bench.kinds import SCENARIOS, report, settings
from bench.load.cold import NODE_ID
from bench.peers.peer import free_ports
from bench.peers.quota_proxy import KINDS, configuration
from tests.support.process.settings import load_settings


def test_the_proxy_takes_every_configuration(tmp_path: Path) -> None:
    loaded = []
    for setting in settings(19092, tmp_path).values():
        bootstrap, admin, port = free_ports(3)
        document = configuration(setting, bootstrap=bootstrap, admin=admin, broker_port_base=port - NODE_ID)
        file = tmp_path / "proxy.yaml"
        file.write_text(yaml.safe_dump(document))
        loaded.append(load_settings(file))
    assert [len(each.quotas.clients) for each in loaded] == [0] + [1000] * (len(KINDS) + 1)
    assert [bool(each.quotas.topics) for each in loaded] == [False, False, True, True, True, True]
    assert [bool(each.quotas.brokers) for each in loaded] == [False, False, False, True, True, True]
    last = loaded[-1].quotas.clients[0]
    assert "controller_mutation_rate" in last
    assert [each.usage is not None for each in loaded] == [False] * 5 + [True]


def test_the_best_rounds_are_compared_with_the_row_before() -> None:
    def samples(one: float, many: float) -> dict[str, list[dict[str, float]]]:
        best = {scenario.name: many if scenario.partitions > 1 else one for scenario in SCENARIOS}
        return {name: [{"cpu_ms_per_1k_req": cpu} for cpu in (1000.0, best[name])] for name in best}

    lines = report({"nothing": samples(10.0, 33.0), "client": samples(11.0, 80.0)})
    assert lines[-2] == "| nothing | 10.00 | 33.00 | 10.00 | 33.00 | 1.00 | 1.00 |"
    one, many, partition = "11.00 (+1.00)", "80.00 (+47.00)", "3.00 (+2.00)"
    assert lines[-1] == f"| client | {one} | {many} | {one} | {many} | {partition} | {partition} |"
