"""The keys of `sharing`: what they default to, and what is rejected."""

from pathlib import Path

import pytest

from proxy.config.sharing import SharingSettings
from proxy.wire.long_names import MAX_TOPIC_NAME
from tests.support.process.settings import SMALLEST, read, rejected_key


def test_topic_and_instance(tmp_path: Path) -> None:
    shares = read(tmp_path, SMALLEST + "sharing: {topic: s, instance: a}").shares
    assert shares == SharingSettings(topic="s", instance="a")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("{topic: a/b}", ("sharing", "topic")),
        (f"{{topic: {'t' * (MAX_TOPIC_NAME + 1)}}}", ("sharing", "topic")),
        (f"{{instance: {'i' * 250}}}", ("sharing", "instance")),
        ("{instances: a}", ("sharing", "instances")),
    ],
)
def test_rejected(tmp_path: Path, text: str, key: tuple[str, ...]) -> None:
    assert rejected_key(tmp_path, SMALLEST + f"sharing: {text}") == key
