"""What Kafka's own ClientQuotaManager gives to the clients of tests/support/simulations/debt_attacks.py."""

from typing import Final

import pytest

from tests.support.kafka.tool_server import run_java
from tests.support.simulations.debt_attacks import CONSUMERS, LIMIT, PRODUCERS, SECONDS, STARVED_SIZES, TICK

pytestmark = pytest.mark.kafka
CASES: Final = [
    *((attack.kafka, attack.native) for attack in PRODUCERS.values()),
    *((f"fetch {size}", native) for size, native in CONSUMERS.items()),
    *((f"fetch {size}", 0) for size in STARVED_SIZES),
]


def test_kafka_gives_what_the_attacks_say() -> None:
    given = "\n".join(case for case, _ in CASES)
    lines = run_java("ClientQuotas", f"{LIMIT:g}", str(SECONDS), f"{TICK * 1000:g}", given=given)
    assert [int(line) for line in lines] == [native for _, native in CASES]
