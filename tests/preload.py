"""What a forked process has imported already: the fork server reads this once.

A worker takes seconds to import what it needs, and tests kill many, so each is forked from a process
that has it all and has begun nothing: no thread, no loop, no connection.
"""

import os
import sys

import autobahn.twisted.websocket  # noqa: F401
import django
import genai_prices.data  # noqa: F401  when the first model call is priced
import twisted.internet.asyncioreactor
import twisted.internet.endpoints
import twisted.web.server  # noqa: F401

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dexweb.settings")
django.setup()

from django.urls import get_resolver  # noqa: E402

import dexweb.asgi  # noqa: E402
import dexweb.engine.worker  # noqa: E402
import dexweb.management.commands.worker  # noqa: E402, F401
import sessions_app.llm.script_model  # noqa: E402
import sessions_app.tools.connection  # noqa: E402, F401

# What daphne is made of. It itself makes the process's event loop when it is imported, so not here.
assert "twisted.internet.reactor" not in sys.modules
get_resolver().url_patterns  # noqa: B018  the views, too
