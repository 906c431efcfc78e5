import pytest
from kio.schema.errors import ErrorCode

from proxy.admin.configs.plan import (
    Plan,
    changes_of,
    entries_of,
    plan_of,
    resource_of,
)
from proxy.admin.messages.alter_configs import APPEND, DELETE, SET, SUBTRACT, ConfigOp
from proxy.admin.messages.config_resources import BACK_TO_FILE, EXPIRES_AT_MS
from proxy.admin.messages.describe_configs import DEFAULT_CONFIG, DYNAMIC_DEFAULT_BROKER_CONFIG, TOPIC_CONFIG
from proxy.admin.rejected import RequestRejected
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource
from tests.support.quotas.config_rules import CONFIG_RULES

KEYS = CONFIG_RULES.keys(TOPIC)
RATE, REPLICAS = "producer.byte.rate", "leader.replication.throttled.replicas"
T, DEFAULT_TOPIC = ConfigResource(TOPIC, "t"), ConfigResource(TOPIC, DEFAULT_RESOURCE)
NOW_MS = 1000


def op(name: str, value: str | None, operation: int = SET) -> ConfigOp:
    return ConfigOp(name, operation, value, b"")


@pytest.mark.parametrize(
    ("key", "resource"),
    [
        ((2, "t"), T),
        ((4, ""), ConfigResource(BROKER, DEFAULT_RESOURCE)),
        ((4, "01"), ConfigResource(BROKER, "1")),
        ((4, "x"), None),
        ((4, "9" * 5000), None),
        ((8, "1"), None),
    ],
)
def test_resource_of(key: tuple[int, str], resource: ConfigResource | None) -> None:
    assert resource_of(key) == resource


def test_changes_are_canonical_values_and_removals() -> None:
    assert changes_of([op(RATE, " 05"), op(REPLICAS, None, DELETE)], KEYS, {}, False) == {
        RATE: "5",
        REPLICAS: None,
    }


def test_append_and_subtract_start_from_the_current_list() -> None:
    current = {REPLICAS: "0:1"}
    assert changes_of([op(REPLICAS, "1:2", APPEND)], KEYS, current, False) == {REPLICAS: "0:1,1:2"}
    assert changes_of([op(REPLICAS, "0:1", SUBTRACT)], KEYS, current, False) == {REPLICAS: ""}
    assert changes_of([op(REPLICAS, "2:1,2:1", APPEND)], KEYS, current, False) == {REPLICAS: "0:1,2:1"}


def test_replacing_removes_what_is_not_named_and_keeps_equal_values() -> None:
    current = {RATE: "5", REPLICAS: "0:1"}
    assert changes_of([op(RATE, "5")], KEYS, current, True) == {REPLICAS: None}


@pytest.mark.parametrize(
    ("ops", "code"),
    [
        ([op(RATE, "0")], ErrorCode.invalid_config),
        ([op(RATE, "5", APPEND)], ErrorCode.invalid_config),
        ([op(RATE, None)], ErrorCode.invalid_request),
        ([op(RATE, "5", 9)], ErrorCode.invalid_request),
        ([op(RATE, "5"), op(RATE, "5")], ErrorCode.invalid_request),
    ],
)
def test_invalid_ops(ops: list[ConfigOp], code: ErrorCode) -> None:
    with pytest.raises(RequestRejected, match=RATE) as caught:
        changes_of(ops, KEYS, {}, False)
    assert caught.value.code == code


def test_expiry() -> None:
    until = op(EXPIRES_AT_MS, str(NOW_MS + 1))
    assert plan_of([op(RATE, "5"), until], KEYS, {}, False, NOW_MS) == Plan({RATE: "5"}, NOW_MS + 1)
    ends = plan_of([op(EXPIRES_AT_MS, None, DELETE)], KEYS, {}, False, NOW_MS)
    assert ends == Plan({}, end_temporary=True)
    with pytest.raises(RequestRejected, match=EXPIRES_AT_MS):
        plan_of([op(RATE, "5"), op(EXPIRES_AT_MS, str(NOW_MS))], KEYS, {}, False, NOW_MS)
    with pytest.raises(RequestRejected, match=EXPIRES_AT_MS):
        plan_of([op(RATE, "5"), until], KEYS, {}, True, NOW_MS)


@pytest.mark.parametrize("behind", ["0", "0" * 400, "0" * 5000])
def test_expiry_has_the_digits_of_a_time(behind: str) -> None:
    """The first 20 digits alone are a time in the future."""
    until = op(EXPIRES_AT_MS, f"{NOW_MS + 1:020}{behind}")
    with pytest.raises(RequestRejected) as rejected:
        plan_of([op(RATE, "5"), until], KEYS, {}, False, NOW_MS)
    assert rejected.value.code == ErrorCode.invalid_config


def test_entries_have_the_value_in_force_first() -> None:
    configs = {T: {RATE: "5"}, DEFAULT_TOPIC: {RATE: "7"}}
    [entry] = entries_of(T, KEYS, configs, frozenset([RATE]))
    assert (entry.value, entry.source) == ("5", TOPIC_CONFIG)
    assert entry.synonyms == (("5", TOPIC_CONFIG), ("7", DYNAMIC_DEFAULT_BROKER_CONFIG))
    [entry] = entries_of(T, KEYS, {DEFAULT_TOPIC: {RATE: "7"}}, frozenset([RATE]))
    assert (entry.value, entry.source) == ("7", DYNAMIC_DEFAULT_BROKER_CONFIG)


def test_entry_without_a_value_is_described_only_by_name() -> None:
    [entry] = entries_of(T, KEYS, {}, frozenset([RATE]))
    assert (entry.value, entry.source) == (None, DEFAULT_CONFIG)
    assert RATE not in [entry.name for entry in entries_of(T, KEYS, {}, None)]


def test_back_to_file() -> None:
    back = op(BACK_TO_FILE, "true")
    assert plan_of([back], KEYS, {}, False, NOW_MS) == Plan({}, back_to_file=True)
    both = [op(RATE, None, DELETE), back]
    assert plan_of(both, KEYS, {}, False, NOW_MS) == Plan({RATE: None}, back_to_file=True)


@pytest.mark.parametrize(
    ("ops", "replaces", "code"),
    [
        ([op(BACK_TO_FILE, "false")], False, ErrorCode.invalid_config),
        ([op(BACK_TO_FILE, None, DELETE)], False, ErrorCode.invalid_config),
        ([op(BACK_TO_FILE, "true"), op(EXPIRES_AT_MS, "2000")], False, ErrorCode.invalid_config),
        ([op(BACK_TO_FILE, "true"), op(BACK_TO_FILE, "true")], False, ErrorCode.invalid_request),
        ([op(BACK_TO_FILE, "true")], True, ErrorCode.invalid_config),
    ],
)
def test_wrong_back_to_file(ops: list[ConfigOp], replaces: bool, code: ErrorCode) -> None:
    with pytest.raises(RequestRejected) as caught:
        plan_of(ops, KEYS, {}, replaces, NOW_MS)
    assert caught.value.code == code
