"""Any split of a byte stream gives the same frames."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.wire.errors import ProtocolError
from proxy.wire.frames import CUT_THROUGH_BYTES, FrameSplitter
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import framed, parts_of

SIZES = st.integers(0, 300) | st.integers(4000, 5000)
CUTS = st.lists(st.integers(0, 2**32), max_size=12)


def bodies(sizes: list[int]) -> list[bytes]:
    """Bodies of these sizes, no two bytes near each other alike."""
    return [bytes((at + index) % 251 for at in range(size)) for index, size in enumerate(sizes)]


def chunks(stream: bytes, cuts: list[int]) -> list[bytes]:
    return parts_of(stream, [cut % (len(stream) + 1) for cut in cuts])


@given(st.lists(SIZES, max_size=8), CUTS)
def test_frames_are_the_same_however_they_are_split(sizes: list[int], cuts: list[int]) -> None:
    sent = [framed(body) for body in bodies(sizes)]
    splitter = FrameSplitter(CUT_THROUGH_BYTES)
    got = []
    for chunk in chunks(b"".join(sent), cuts):
        splitter.feed(chunk)
        while (frame := splitter.next()) is not None:
            assert frame.complete
            assert sum(map(len, frame.pieces)) == frame.size
            got.append(b"".join(frame.pieces))
    assert got == sent
    assert splitter.buffered == 0


LARGE = [bytes(range(256)) * 4400, b"small", bytes(range(255, -1, -1)) * 8200, b""]
STREAM = b"".join(framed(body) for body in LARGE)


@settings(max_examples=40)
@given(st.lists(st.integers(0, len(STREAM)), max_size=40), st.sampled_from([4, 100, 4096, CUT_THROUGH_BYTES]))
def test_large_frames_are_the_same_however_they_are_split(cuts: list[int], first_part_bytes: int) -> None:
    splitter = FrameSplitter(1 << 30, first_part_bytes)
    got: list[tuple[bytes, bool]] = []
    """Each frame, and whether it is complete."""
    fed = handed_out = 0
    for chunk in parts_of(STREAM, cuts):
        splitter.feed(chunk)
        fed += len(chunk)
        while (frame := splitter.next()) is not None:
            handed_out += sum(map(len, frame.pieces))
            if not got or got[-1][1]:
                got.append((b"", False))
                assert frame.complete or sum(map(len, frame.pieces)) >= first_part_bytes
            got[-1] = got[-1][0] + b"".join(frame.pieces), frame.complete
            assert splitter.in_frame is not frame.complete
        assert splitter.buffered == fed - handed_out <= max(first_part_bytes, CUT_THROUGH_BYTES) + len(chunk)
    assert got == [(framed(body), True) for body in LARGE]


READS = st.lists(
    st.sampled_from(["u8", "i16", "i32", "uvarint", "string", "compact", "uuid", "skip", "skip_tags"]),
    max_size=20,
)


@given(st.binary(max_size=80), CUTS, READS)
def test_reads_are_the_same_however_the_bytes_are_split(
    data: bytes, cuts: list[int], reads: list[str]
) -> None:
    """And so are the errors."""
    whole = outcome([data], reads)
    assert outcome(chunks(data, cuts), reads) == whole
    assert outcome([data[at : at + 1] for at in range(len(data))] or [b""], reads) == whole


def outcome(pieces: list[bytes], reads: list[str]) -> list[object]:
    reader = Reader(pieces)
    read: dict[str, Callable[[], object]] = {
        "u8": reader.u8,
        "i16": reader.i16,
        "i32": reader.i32,
        "uvarint": reader.uvarint,
        "string": lambda: reader.string(False),
        "compact": lambda: reader.string(True),
        "uuid": reader.uuid,
        "skip": lambda: reader.skip(3),
        "skip_tags": reader.skip_tags,
    }
    got: list[object] = []
    try:
        for name in reads:
            value = read[name]()
            got.append((value, reader.offset))
    except ProtocolError as error:
        got.append(type(error))
    return got
