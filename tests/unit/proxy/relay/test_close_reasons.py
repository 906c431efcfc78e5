from typing import Never

import pytest

from proxy.relay import close_reasons as errors
from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR, RelayError


def test_an_error_has_a_reason_for_the_metric_and_a_text_for_the_log() -> Never:
    with pytest.raises(RelayError, match="what was wrong") as caught:
        raise RelayError(CLIENT_PROTOCOL_ERROR, "what was wrong")
    assert caught.value.reason == "client_protocol_error"


def test_every_reason_is_a_label_of_its_own() -> None:
    reasons = [value for name, value in vars(errors).items() if name.isupper()]
    assert len(reasons) == len(set(reasons))
    assert all(reason == reason.lower() for reason in reasons)
