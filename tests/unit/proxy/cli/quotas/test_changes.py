"""What `diff` shows and `import` sends."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.cli.quotas.changes import EntityAlteration, alterations, compare, kept, summary
from proxy.cli.quotas.entity import CLIENTS, Entity, Quotas

ALICE: Entity = (("user", "alice"),)
BOB: Entity = (("user", "bob"),)
HAVE: Quotas = {
    ALICE: {"consumer_byte_rate": 5.0, "producer_byte_rate": 1.0},
    BOB: {"producer_byte_rate": 7.0},
}
WANT: Quotas = {ALICE: {"producer_byte_rate": 2.0, "request_percentage": 12.5}}


def test_with_prune_what_the_file_lacks_goes() -> None:
    assert [str(change) for change in compare(HAVE, WANT, prune=[CLIENTS])] == [
        "- user alice: consumer_byte_rate 5",
        "~ user alice: producer_byte_rate 1 -> 2",
        "+ user alice: request_percentage 12.5",
        "- user bob: producer_byte_rate 7",
    ]


def test_without_prune_it_stays() -> None:
    assert [str(change) for change in compare(HAVE, WANT)] == [
        "~ user alice: producer_byte_rate 1 -> 2",
        "+ user alice: request_percentage 12.5",
    ]


def test_ignored_quotas_do_not_change() -> None:
    apart = {(ALICE, "producer_byte_rate"), (BOB, "producer_byte_rate")}
    assert [change.key for change in compare(HAVE, WANT, prune=[CLIENTS], ignored=apart)] == [
        "consumer_byte_rate",
        "request_percentage",
    ]


def test_equal_quotas_differ_in_nothing() -> None:
    assert compare(HAVE, HAVE, prune=[CLIENTS]) == []


def test_an_entity_is_altered_once_in_a_request() -> None:
    assert alterations(compare(HAVE, WANT, prune=[CLIENTS])) == [
        EntityAlteration(
            ALICE, {"consumer_byte_rate": None, "producer_byte_rate": 2.0, "request_percentage": 12.5}
        ),
        EntityAlteration(BOB, {"producer_byte_rate": None}),
    ]


def test_summary() -> None:
    assert summary(compare(HAVE, WANT, prune=[CLIENTS])) == "1 to add, 1 to change, 2 to remove"


_entities = st.sampled_from([ALICE, BOB, (("user", None),), (("user", "alice"), ("client-id", None))])
_values = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(1, 3).map(float), min_size=1)
_quotas = st.dictionaries(_entities, _values)


def _apply(have: Quotas, entries: list[EntityAlteration]) -> Quotas:
    result = {entity: dict(values) for entity, values in have.items()}
    for entry in entries:
        values = result.setdefault(entry.entity, {})
        for key, value in entry.values.items():
            if value is None:
                del values[key]
            else:
                values[key] = value
    return {entity: values for entity, values in result.items() if values}


@given(have=_quotas, want=_quotas)
def test_the_alterations_make_one_the_other(have: Quotas, want: Quotas) -> None:
    assert _apply(have, alterations(compare(have, want, prune=[CLIENTS]))) == want


@given(have=_quotas, want=_quotas)
def test_without_prune_they_lay_one_over_the_other(have: Quotas, want: Quotas) -> None:
    both = {entity: {**have.get(entity, {}), **want.get(entity, {})} for entity in {**have, **want}}
    assert _apply(have, alterations(compare(have, want))) == both


def test_prune_leaves_the_quotas_of_the_file_and_returns_those_that_tools_have_changed() -> None:
    of_file: Quotas = {ALICE: {"consumer_byte_rate": 5.0}, BOB: {"producer_byte_rate": 6.0}}
    [of_alice, of_bob] = compare(HAVE, {}, prune=[CLIENTS], of_file=of_file)
    assert (of_alice.key, of_alice.after, of_alice.of_file) == ("producer_byte_rate", None, None)
    assert (of_bob.before, of_bob.after, of_bob.of_file) == (7.0, None, 6.0)
    assert [entry.back_to_file for entry in alterations([of_bob], back_to_file=True)] == [True]
    assert len(kept(HAVE, {}, of_file, [CLIENTS])) == 2
    assert kept({}, {}, of_file, [CLIENTS]) == [], "tools have removed them"
    after: Quotas = {ALICE: {"consumer_byte_rate": 5.0}, BOB: {"producer_byte_rate": 6.0}}
    assert compare(after, {}, prune=[CLIENTS], of_file=of_file) == [], "a second run"


def test_prune_concerns_the_sections_that_it_names() -> None:
    have: Quotas = {**HAVE, (("topic", "t"),): {"producer.byte.rate": "5"}}
    assert {change.entity for change in compare(have, {}, prune=["topics"])} == {(("topic", "t"),)}
    assert compare(have, {}, prune=()) == []
