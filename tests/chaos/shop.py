"""The shop over HTTP: a stranger's system, which goes on when ours dies in the middle of a call."""

import os
import sys

import uvicorn

from sessions_app.tools.shop.ledger import Ledger
from sessions_app.tools.shop.server import Shop, build_server, parse_delays

if __name__ == "__main__":
    shop = Shop(Ledger(os.environ["SHOP_DB"]), parse_delays(os.environ["SHOP_DELAY"]))
    app = build_server(shop).streamable_http_app()
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
