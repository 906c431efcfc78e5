"""The files of the page. They have no data: the browser reads /api/quotas and /readyz."""

from importlib.resources import files
from typing import Final

from aiohttp import web

SCRIPTS: Final = ("api", "table", "detail", "process", "page")
FILES: Final = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    **{f"/{name}.js": (f"{name}.js", "text/javascript") for name in SCRIPTS},
}
"""File names and content types by path."""
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""The browser loads nothing from elsewhere, and runs no script but the page's."""


async def page(request: web.Request) -> web.Response:
    """Respond with the file of the path."""
    name, content_type = FILES[request.path]
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return web.Response(text=text, content_type=content_type, headers=HEADERS)
