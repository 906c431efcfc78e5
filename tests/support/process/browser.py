"""A headless Chromium, driven over its DevTools protocol."""

import asyncio
import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp

CHROMIUM: Final = shutil.which("chromium") or shutil.which("google-chrome")
WAIT_SECONDS: Final = 60.0


class Page:
    """One page of a browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket: Final = socket
        self._number = 0

    async def call(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json(timeout=WAIT_SECONDS)
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]

    async def run(self, script: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        result = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    async def wait_for(self, script: str) -> None:
        """Wait until an expression is true in the page."""
        clock = asyncio.get_running_loop().time
        latest = clock() + WAIT_SECONDS
        while not await self.run(f"!!({script})"):
            text = await self.run("document.body.innerText") if clock() > latest else ""
            assert clock() <= latest, f"{script} stays false; the page:\n{text}"
            await asyncio.sleep(0.05)

    async def open(self, url: str) -> None:
        await self.call("Page.enable")
        await self.call("Page.navigate", url=url)

    async def fill(self, selector: str, value: str) -> None:
        """Set the value of a field, as typing does."""
        field = f"document.querySelector({json.dumps(selector)})"
        told = (
            'for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, {bubbles: true}));'
        )
        await self.run(f"{{ const field = {field}; field.value = {json.dumps(value)}; {told} }}")

    async def click(self, selector: str) -> None:
        await self.run(f"document.querySelector({json.dumps(selector)}).click()")

    async def press(self, key: str) -> None:
        """Press and release a key in the element that has the focus."""
        for event in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=event, key=key)

    async def look(self, width: int, height: int, scheme: str = "light") -> None:
        """Set the size in CSS pixels, and the color scheme."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.call("Emulation.setEmulatedMedia", features=features)


@asynccontextmanager
async def browser_page() -> AsyncIterator[Page]:
    """A page of a new browser, which ends with the block."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        arguments = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0")
        browser = await asyncio.create_subprocess_exec(
            CHROMIUM,
            *arguments,
            f"--user-data-dir={folder}",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            port = await _port(Path(folder))
            async with aiohttp.ClientSession() as session:
                async with session.put(f"http://127.0.0.1:{port}/json/new?about:blank") as response:
                    target = await response.json()
                async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    yield Page(socket)
        finally:
            browser.kill()
            await browser.wait()


async def _port(folder: Path) -> int:
    """The port that the browser has written to its folder."""
    file = folder / "DevToolsActivePort"
    clock = asyncio.get_running_loop().time
    latest = clock() + WAIT_SECONDS
    while not (file.exists() and file.read_text().strip()):
        assert clock() <= latest, "Chromium does not start"
        await asyncio.sleep(0.05)
    return int(file.read_text().split()[0])
