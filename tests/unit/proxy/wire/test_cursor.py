from proxy.wire.cursor import HEAD, NO_ID, Cursor
from proxy.wire.reader import Reader
from proxy.wire.walk import TAIL


def test_a_cursor_that_is_used_again_has_nothing_of_the_message_before() -> None:
    cursor = Cursor()
    cursor.done = cursor.length_sent = cursor.any_batch = True
    cursor.mark = Reader([b"abc"]).mark()
    cursor.marked_edits, cursor.phase, cursor.error_code = 3, TAIL, 5
    cursor.topic, cursor.topic_id, cursor.head = "t", b"i" * 16, b"head"
    cursor.start()
    assert (cursor.done, cursor.length_sent, cursor.any_batch) == (False, False, False)
    assert cursor.mark is None
    assert (cursor.marked_edits, cursor.phase, cursor.error_code) == (0, HEAD, 0)
    assert (cursor.topic, cursor.topic_id, cursor.head) == ("", NO_ID, b"")
