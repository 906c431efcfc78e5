"""Alerts of failed handshakes; test_tls_opener.py has real handshakes."""

import asyncio
import socket

from proxy.security.alerts import Handshake


async def test_alert_is_sent_and_the_client_closes_the_connection() -> None:
    server, client = socket.socketpair()
    for end in (server, client):
        end.setblocking(False)
    handshake = Handshake(server)
    handshake.alert = b"alert"
    server.close()
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(client, b"unread data")
    sending = loop.create_task(handshake.send_alert())
    assert await loop.sock_recv(client, 100) == b"alert"
    assert await loop.sock_recv(client, 100) == b""
    client.close()
    await sending
    handshake.close()


async def test_nothing_is_sent_without_an_alert() -> None:
    server, client = socket.socketpair()
    handshake = Handshake(server)
    server.close()
    await handshake.send_alert()
    handshake.close()
    assert client.recv(100) == b""
    client.close()
