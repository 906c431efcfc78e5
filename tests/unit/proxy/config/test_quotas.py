"""The types of the keys below `quotas`."""

from pathlib import Path

import pytest

from proxy.config.quotas import StoreTopic
from tests.support.process.settings import SMALLEST, read


@pytest.mark.parametrize(
    ("text", "store"),
    [
        ("", StoreTopic()),
        ("quotas: {store: {topic: quotas}}", StoreTopic(topic="quotas")),
        ("quotas: {store: none}", "none"),
    ],
)
def test_store_is_a_topic_or_none(tmp_path: Path, text: str, store: object) -> None:
    assert read(tmp_path, SMALLEST + text).quotas.store == store
