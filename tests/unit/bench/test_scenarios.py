"""Every scenario is one that the load pair can carry, and every target is measured by one."""

from bench.load.broker import BUFFER_SIZE
from bench.load.frames import fetch_request, produce_request
from bench.output.targets import TARGETS
from bench.scenarios import SCENARIOS


def test_names_are_unique() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)


def test_the_load_pair_can_carry_them() -> None:
    for scenario in SCENARIOS:
        build = produce_request if scenario.kind == "produce" else fetch_request
        assert len(build("bench-999", scenario.partitions, scenario.size)) < BUFFER_SIZE
        assert 1 <= scenario.partitions <= 126


def test_quick_changes_the_number_of_requests_only() -> None:
    for scenario in SCENARIOS:
        quick = scenario.quick()
        assert quick.connections <= quick.requests < scenario.requests
        assert (quick.name, quick.rate, quick.tenants) == (scenario.name, scenario.rate, scenario.tenants)


def test_targets_are_measured_with_byte_quotas_of_1000_tenants() -> None:
    by_name = {scenario.name: scenario for scenario in SCENARIOS}
    assert {by_name[target.scenario].tenants for target in TARGETS} == {1000}
