"""Layers: which value holds, what changes when one layer does, and when temporary values end."""

import random
import time

import pytest

from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.store.layers import Layer, Layers, Temporary

ALICE = QuotaEntity("alice", None)
BOB = QuotaEntity("bob", DEFAULT)
GONE = QuotaEntity("gone", None)
RATE = "producer_byte_rate"
NOW = 1000
QuotaLayer = Layer[QuotaEntity, float | None]
QuotaLayers = Layers[QuotaEntity, float | None]


@pytest.fixture
def layers() -> QuotaLayers:
    return QuotaLayers()


def refreshed(layers: QuotaLayers, now_ms: int = NOW) -> float | None:
    """What holds of ALICE's RATE after a change."""
    layers.refresh(ALICE, RATE, now_ms)
    return layers.effective.get(ALICE, {}).get(RATE)


def test_tools_override_the_file_and_temporary_values_override_lasting_ones(layers: QuotaLayers) -> None:
    layers.file.set_lasting(ALICE, RATE, 1)
    assert refreshed(layers) == 1
    layers.file.set_temporary(ALICE, RATE, Temporary(2, NOW + 10))
    assert refreshed(layers) == 2
    layers.tools.set_lasting(ALICE, RATE, 3)
    assert refreshed(layers) == 3
    layers.tools.set_temporary(ALICE, RATE, Temporary(4, NOW + 10))
    assert refreshed(layers) == 4


def test_removal_hides_the_file_until_it_is_dropped(layers: QuotaLayers) -> None:
    layers.file.set_lasting(ALICE, RATE, 1)
    layers.file.set_temporary(ALICE, RATE, Temporary(2, NOW + 10))
    layers.tools.set_lasting(ALICE, RATE, None)
    assert refreshed(layers) is None
    assert layers.lasting(ALICE, RATE) is None
    assert ALICE not in layers.effective, "an entity without quotas is not there"
    layers.tools.drop_lasting(ALICE, RATE)
    assert refreshed(layers) == 2
    assert layers.lasting(ALICE, RATE) == 1


def test_limit_can_be_removed_temporarily(layers: QuotaLayers) -> None:
    layers.tools.set_lasting(ALICE, RATE, 1)
    layers.tools.set_temporary(ALICE, RATE, Temporary(None, NOW + 10))
    assert refreshed(layers) is None
    assert refreshed(layers, NOW + 10) == 1


def test_refresh_tells_whether_the_effective_value_changed(layers: QuotaLayers) -> None:
    layers.tools.set_lasting(ALICE, RATE, 1)
    assert layers.refresh(ALICE, RATE, NOW)
    assert not layers.refresh(ALICE, RATE, NOW)
    layers.tools.drop_lasting(ALICE, RATE)
    assert layers.refresh(ALICE, RATE, NOW)
    assert not layers.refresh(ALICE, RATE, NOW)


def test_temporary_values_fall_back_when_they_end(layers: QuotaLayers) -> None:
    layers.tools.set_lasting(ALICE, RATE, 1)
    for entity, until in ((ALICE, NOW + 20), (BOB, NOW + 10)):
        layers.tools.set_temporary(entity, RATE, Temporary(9, until))
        layers.ends(entity, RATE, until)
        layers.refresh(entity, RATE, NOW)
    assert layers.next_end() == NOW + 10
    assert layers.expire(NOW + 9) == []
    assert layers.expire(NOW + 10) == [(BOB, RATE)]
    assert layers.effective == {ALICE: {RATE: 9}}
    assert layers.expire(NOW + 20) == [(ALICE, RATE)]
    assert layers.effective == {ALICE: {RATE: 1}}
    assert layers.next_end() is None
    assert layers.tools.temporary == {}


def test_later_expiry_replaces_an_earlier_one(layers: QuotaLayers) -> None:
    for until in (NOW + 10, NOW + 30):
        layers.tools.set_temporary(ALICE, RATE, Temporary(9, until))
        layers.ends(ALICE, RATE, until)
    assert refreshed(layers) == 9
    assert layers.expire(NOW + 10) == []
    assert refreshed(layers, NOW + 10) == 9
    assert layers.expire(NOW + 30) == [(ALICE, RATE)]


def test_in_file(layers: QuotaLayers) -> None:
    assert not layers.in_file(ALICE, RATE)
    layers.file.set_temporary(ALICE, RATE, Temporary(1, NOW))
    assert layers.in_file(ALICE, RATE)
    layers.file.drop_temporary(ALICE, RATE)
    layers.file.set_lasting(ALICE, RATE, 1)
    assert layers.in_file(ALICE, RATE)


def test_whole_layers_are_replaced(layers: QuotaLayers) -> None:
    layers.tools.set_lasting(BOB, RATE, 1)
    layers.refresh(BOB, RATE, NOW)
    file, tools = QuotaLayer(), QuotaLayer()
    file.set_lasting(ALICE, RATE, 2)
    file.set_lasting(ALICE, "other", 3)
    tools.set_lasting(ALICE, RATE, None)
    tools.set_temporary(BOB, RATE, Temporary(5, NOW + 5))
    tools.set_temporary(ALICE, RATE, Temporary(6, NOW - 1))
    layers.use(file, tools, NOW)
    assert layers.effective == {ALICE: {"other": 3}, BOB: {RATE: 5}}
    layers.expire(NOW + 5)
    assert layers.effective == {ALICE: {"other": 3}}


def test_single_changes_and_whole_layers_have_the_same_result() -> None:
    """Whatever changes in whatever order: the folded quotas are those of folding everything anew."""
    choice = random.Random(20)
    step, now_ms = QuotaLayers(), NOW
    entities = [QuotaEntity(name, None) for name in "abc"]
    for _ in range(3000):
        now_ms += choice.randrange(3)
        layer = choice.choice([step.file, step.tools])
        entity, name = choice.choice(entities), choice.choice(["x", "y"])
        value = float(choice.randrange(1, 4))
        match choice.randrange(4):
            case 0:
                layer.set_lasting(entity, name, choice.choice([value, None]))
            case 1:
                until = now_ms + choice.randrange(20)
                layer.set_temporary(entity, name, Temporary(choice.choice([value, None]), until))
                step.ends(entity, name, until)
            case 2:
                layer.drop_lasting(entity, name)
            case _:
                layer.drop_temporary(entity, name)
        step.refresh(entity, name, now_ms)
        step.expire(now_ms)
        whole = QuotaLayers()
        whole.use(step.file, step.tools, now_ms)
        assert step.effective == whole.effective


def test_another_file_changes_what_differs(layers: QuotaLayers) -> None:
    first, second = QuotaLayer(), QuotaLayer()
    for layer, values in ((first, {"a": 1, "b": 1, "c": 1}), (second, {"a": 1, "b": 2, "d": 2})):
        for name, value in values.items():
            layer.set_lasting(ALICE, name, value)
    first.set_lasting(GONE, RATE, 3)
    second.set_temporary(BOB, RATE, Temporary(7, NOW + 5))
    layers.tools.set_lasting(ALICE, "d", 9)
    layers.use(first, layers.tools, NOW)
    changed = [(ALICE, "b"), (ALICE, "c"), (BOB, RATE), (GONE, RATE)]
    assert sorted(layers.renew(*layers.use_file(second), NOW)) == sorted(changed)
    assert layers.effective == {ALICE: {"a": 1, "b": 2, "d": 9}, BOB: {RATE: 7}}
    assert layers.expire(NOW + 5) == [(BOB, RATE)]


def test_a_change_of_the_effective_values_leaves_those_of_the_file(layers: QuotaLayers) -> None:
    file = QuotaLayer()
    file.set_lasting(ALICE, RATE, 1)
    file.set_lasting(ALICE, "other", 1)
    layers.use(file, QuotaLayer(), NOW)
    layers.tools.set_lasting(ALICE, RATE, 2)
    layers.tools.set_lasting(ALICE, "other", None)
    assert layers.refresh(ALICE, RATE, NOW)
    assert layers.refresh(ALICE, "other", NOW)
    assert layers.effective == {ALICE: {RATE: 2}}
    assert file.lasting == {ALICE: {RATE: 1, "other": 1}}
    for name in (RATE, "other"):
        layers.tools.drop_lasting(ALICE, name)
        assert layers.refresh(ALICE, name, NOW)
    assert layers.effective == {ALICE: {RATE: 1, "other": 1}}


def test_cost_of_a_change_does_not_depend_on_the_number_of_entities() -> None:
    layers = QuotaLayers()
    file = QuotaLayer()
    for number in range(100_000):
        file.set_lasting(QuotaEntity(f"user-{number}", None), RATE, 1)
    layers.use(file, QuotaLayer(), NOW)
    started = time.process_time()
    for number in range(100):
        layers.tools.set_lasting(QuotaEntity(f"user-{number}", None), RATE, 2)
        assert layers.refresh(QuotaEntity(f"user-{number}", None), RATE, NOW)
    assert time.process_time() - started < 0.5, "100 changes take as long as walking all entities"


def test_another_file_takes_effect_in_steps(layers: QuotaLayers) -> None:
    many = [QuotaEntity(f"user-{number}", None) for number in range(10)]
    first, second = QuotaLayer(), QuotaLayer()
    for entity in many:
        first.set_lasting(entity, RATE, 1)
    for entity in many[1:]:
        second.set_lasting(entity, RATE, 2)
    second.set_lasting(BOB, RATE, 2)
    layers.use(first, layers.tools, NOW)
    before, entities = layers.use_file(second)
    assert entities == [*many[1:], BOB, many[0]]
    assert layers.renew(before, entities[:5], NOW) == [(entity, RATE) for entity in many[1:6]]
    assert layers.effective[many[0]] == layers.effective[many[-1]] == {RATE: 1}
    layers.tools.set_lasting(many[-1], RATE, 9)
    assert layers.refresh(many[-1], RATE, NOW)
    later = [*many[6:-1], BOB, many[0]]
    assert layers.renew(before, entities[5:], NOW) == [(entity, RATE) for entity in later]
    whole = QuotaLayers()
    whole.use(second, layers.tools, NOW)
    assert layers.effective == whole.effective


def test_all_values_are_listed_and_the_first_one_is_in_force(layers: QuotaLayers) -> None:
    generator = random.Random(23)
    for _ in range(200):
        layers = QuotaLayers()
        for layer in (layers.file, layers.tools):
            if generator.random() < 0.5:
                layer.set_lasting(ALICE, RATE, generator.choice([None, 1, 2]))
            if generator.random() < 0.5:
                until = generator.choice([NOW, NOW + 1])
                layer.set_temporary(ALICE, RATE, Temporary(generator.choice([None, 3]), until))
        found = layers.values(ALICE, RATE, NOW)
        assert refreshed(layers) == (found[0].value if found else None)
        assert all(each.until_ms in (None, NOW + 1) for each in found)
        assert [each.source for each in found] == sorted((each.source for each in found), reverse=True)
