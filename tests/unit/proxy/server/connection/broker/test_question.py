"""BrokerQuestion: one response is awaited at a time, and its wait ends with the connection."""

import asyncio

import pytest

from proxy.server.connection.broker.question import BrokerQuestion


async def test_the_first_response_is_the_one_that_is_awaited() -> None:
    question = BrokerQuestion(asyncio.get_running_loop())
    assert not question.open
    question.answer([b"nobody asked"])
    response = question.ask()
    assert question.open
    question.answer([b"one", b"two"])
    assert (await response, question.open) == (b"one", False)


async def test_an_error_is_raised_where_the_response_is_awaited() -> None:
    question = BrokerQuestion(asyncio.get_running_loop())
    response = question.ask()
    question.fail(ConnectionError("gone"))
    with pytest.raises(ConnectionError):
        await response
    question.answer([b"late"])
    assert not question.open


async def test_the_end_of_the_connection_cancels_the_wait() -> None:
    question = BrokerQuestion(asyncio.get_running_loop())
    question.cancel()
    response = question.ask()
    question.cancel()
    assert response.cancelled()
    question.answer([b"late"])
