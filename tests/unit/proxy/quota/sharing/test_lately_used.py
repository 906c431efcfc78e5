"""Which limits other processes may have used lately."""

from proxy.quota.measure.rates import SampledRate
from proxy.quota.sharing.lately_used import LATELY_SECONDS, LatelyUsed


def test_a_limit_is_known_for_a_window_after_it_became_cold() -> None:
    lately = LatelyUsed()
    rate = SampledRate(11, 1.0)
    lately.cool("k", rate, 100.0)
    lately.forget(100.0 + LATELY_SECONDS)
    assert lately.may_be("k", 100.0 + LATELY_SECONDS)
    assert lately.rate("k") is rate
    assert not lately.may_be("another", 100.0)
    assert lately.rate("another") is None
    lately.forget(100.1 + LATELY_SECONDS)
    assert not lately.may_be("k", 100.1 + LATELY_SECONDS)


def test_one_that_becomes_cold_again_is_known_longer() -> None:
    lately = LatelyUsed()
    for at in (100.0, 105.0):
        lately.cool("k", SampledRate(11, 1.0), at)
    lately.forget(104.0 + LATELY_SECONDS)
    assert lately.may_be("k", 104.0 + LATELY_SECONDS)


def test_one_that_is_used_again_is_not_cold() -> None:
    lately = LatelyUsed()
    rate = SampledRate(11, 1.0)
    lately.cool("k", rate, 100.0)
    assert lately.heat("k") is rate
    assert lately.heat("k") is None
    assert not lately.may_be("k", 100.0)


def test_a_process_that_has_joined_lately_knows_no_limit() -> None:
    lately = LatelyUsed()
    assert not lately.may_be("k", 0.0), "it is alone"
    lately.join(0.0)
    lately.join(5.0)
    assert lately.may_be("k", LATELY_SECONDS - 0.1)
    assert not lately.may_be("k", LATELY_SECONDS)
