"""`python -m sessions_app.tools.shop` serves the shop over stdio until its stdin closes."""

import anyio

from sessions_app.tools.shop.server import serve

if __name__ == "__main__":
    anyio.run(serve)
