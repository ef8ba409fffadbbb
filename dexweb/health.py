"""What a supervisor and a load balancer ask: is the process alive, and can it serve?"""

import asyncio
from collections.abc import Awaitable, Callable

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_not_required
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from temporalio.service import RPCError

from dexweb.engine.errors import DexwebError, EngineStateUnreadable

LIMIT_SECONDS = 2.0


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Answers while the process lives, whatever else is away."""
    return HttpResponse("ok\n", content_type="text/plain")


@login_not_required
@require_safe
async def readyz(request: HttpRequest) -> JsonResponse:
    """200 when database, migrations and engine are all well, else 503; each is named."""
    names = ("database", "migrations", "engine")
    found = await asyncio.gather(*(_check(check) for check in (_database, _migrations, _engine)))
    checks = dict(zip(names, found, strict=True))
    ready = all(word == "ok" for word in found)
    return JsonResponse({"ready": ready, "checks": checks}, status=200 if ready else 503)


async def _check(check: Callable[[], Awaitable[str]]) -> str:
    try:
        return await asyncio.wait_for(check(), LIMIT_SECONDS)
    except TimeoutError:
        return f"no answer within {LIMIT_SECONDS:g} s"
    except Exception as error:
        # The class alone: a message may hold an address with a password in it.
        return f"unreachable ({type(error).__name__})"


async def _database() -> str:
    return await sync_to_async(_ask_database)()


def _ask_database() -> str:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute("SELECT 1")
    return "ok"


async def _migrations() -> str:
    return await sync_to_async(_ask_migrations)()


def _ask_migrations() -> str:
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return f"{len(pending)} pending: run manage.py migrate" if pending else "ok"


async def _engine() -> str:
    from dexweb.engine.client import SessionEngine

    engine = SessionEngine()
    if not await engine.healthy():
        return "unreachable"
    try:
        session_id = await sync_to_async(_newest_session)()
        if session_id:
            await engine.check_readable(session_id)
    except EngineStateUnreadable as error:
        return f"{error.code}: a key is missing in DEXWEB_CREDENTIAL_KEYS"
    except (DatabaseError, DexwebError, RPCError):
        # Said by the other checks, or of that one session only.
        pass
    return "ok"


def _newest_session() -> str | None:
    from sessions_app.models import Session

    running = Session.objects.filter(status=Session.Status.RUNNING)
    return running.order_by("-updated_at", "-id").values_list("pk", flat=True).first()
