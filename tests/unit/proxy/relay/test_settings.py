"""RelaySettings: what relays share, and what each set of settings has of its own."""

from proxy.relay.settings import RelaySettings


def test_relays_without_settings_for_it_share_memory_and_names_with_no_others() -> None:
    one, other = (RelaySettings(max_frame_bytes=1) for _ in range(2))
    assert one.large_frames is not other.large_frames
    assert one.topic_names is not other.topic_names
