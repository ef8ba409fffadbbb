"""``Idempotency-Key``: a retry gets the first answer; a key never means two things."""

import json
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from dexweb.engine.errors import KeyReused
from sessions_app.api.problems import PROBLEM_TYPE
from sessions_app.api.renderers import RawJSON, dumps_exact
from sessions_app.models import IdempotencyKey

HEADER = "Idempotency-Key"
KEPT = timedelta(days=7)


def once(view: Any, act: Callable[[str], Response]) -> Response:
    """Runs ``act(request_id)`` unless this key has its answer already; then gives that again.

    A refusal that changed nothing frees the key; one that may be retried runs again under the same
    request id, which the engine and the outbox know. Raises `KeyReused`.
    """
    request: Request = view.request
    key = request.headers.get(HEADER, "").strip()
    if not key:
        return act(str(uuid.uuid4()))
    if len(key) > 200 or not key.isprintable():
        raise ValidationError({HEADER: "Use at most 200 printable characters, such as a UUID."})
    kept = _claim(request, key)
    if kept.status is not None:
        return _replay(kept)
    try:
        response = act(_request_id(request, key))
    except Exception as error:
        # The answer is what the client sees, so a refusal is turned into it here, to be kept.
        response = view.handle_exception(error)
    _settle(kept, response)
    return response


def _claim(request: Request, key: str) -> IdempotencyKey:
    IdempotencyKey.objects.filter(created_at__lt=timezone.now() - KEPT).delete()
    path, body_hash = _path(request), _hash(request)
    with transaction.atomic():
        kept, _ = IdempotencyKey.objects.get_or_create(
            user=request.user, key=key, defaults={"path": path, "body_hash": body_hash}
        )
    if (kept.path, kept.body_hash) != (path, body_hash):
        raise KeyReused
    return kept


def _path(request: Request) -> str:
    """With and without the last slash is one address; a long one is told apart by its hash. What is
    asked of it is part of it: to edit is not to withdraw.
    """
    path = request.path.rstrip("/")
    path = path if request.method == "POST" else f"{request.method} {path}"
    return path if len(path) <= 300 else salted_hmac("dexweb.idempotency.path", path).hexdigest()


def _hash(request: Request) -> str:
    body = json.dumps(request.data, sort_keys=True, default=str)
    return salted_hmac("dexweb.idempotency", body, algorithm="sha256").hexdigest()


def _request_id(request: Request, key: str) -> str:
    """One's own: under another's id the Flow would take this for that one's request again."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{request.user.pk}:{_path(request)}:{key}"))


def _settle(kept: IdempotencyKey, response: Response) -> None:
    row = IdempotencyKey.objects.filter(pk=kept.pk, status__isnull=True)
    status = response.status_code
    retryable = status >= 500 or bool(
        isinstance(response.data, dict) and response.data.get("retryable")
    )
    if status < 300 or (status == 409 and not retryable):
        row.update(status=status, body=dumps_exact(response.data))
    elif not retryable:
        row.delete()


def _replay(kept: IdempotencyKey) -> Response:
    return Response(
        RawJSON(kept.body),
        status=kept.status,
        headers={"Idempotency-Replayed": "true"},
        content_type=PROBLEM_TYPE if kept.status and kept.status >= 400 else None,
    )
