"""Sessions: the list, one of them, and what people ask of it."""

from dataclasses import asdict
from typing import Any

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from sessions_app import actions
from sessions_app.api import serializers
from sessions_app.api.filters import filter_sessions
from sessions_app.api.idempotency import once
from sessions_app.api.permissions import OPERATE_SESSION, VIEW_SESSION
from sessions_app.api.schema import CONFLICTS, OPERATION, PROBLEMS
from sessions_app.api.views import ApiView
from sessions_app.models import Message, Session


class SessionView(ApiView):
    """A view about sessions; with ``session_id`` in its address, about one."""

    reads = (VIEW_SESSION,)
    writes = (OPERATE_SESSION,)

    def get_session(self) -> Session:
        """The row that the address names. Raises `Http404`."""
        try:
            return Session.objects.for_list().get(pk=self.kwargs["session_id"])
        except Session.DoesNotExist as error:
            raise Http404 from error

    def get_object(self) -> Session:
        return self.get_session()


class SessionList(SessionView):
    serializer_class = serializers.SessionSerializer
    keyset = ("-updated_at", "-id")

    @extend_schema(
        operation_id="sessions_list",
        parameters=[
            OpenApiParameter("status", str, enum=Session.Status.values),
            OpenApiParameter("phase", str, enum=Session.Phase.values),
            OpenApiParameter("agent", str, description="An agent's name"),
            OpenApiParameter("waiting", bool, description="Waits for a person"),
            OpenApiParameter("q", str, description="In the title, or how the id begins"),
        ],
        responses={200: serializers.SessionSerializer(many=True), **PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        """Sessions, last changed first."""
        return self.page(filter_sessions(request))

    @extend_schema(
        operation_id="sessions_start",
        request=serializers.StartSessionSerializer,
        responses={201: serializers.SessionDetailSerializer, **PROBLEMS, **CONFLICTS},
        **OPERATION,
    )
    def post(self, request: Request) -> Response:
        """Start a session with its first message."""
        return once(self, self._start)

    def _start(self, request_id: str) -> Response:
        body = serializers.StartSessionSerializer(data=self.request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        session = actions.start_session(
            self.request.user,
            agent=asked["agent"],
            message=asked["message"],
            title=asked["title"],
            labels=asked["labels"],
            settings=asked["settings"],
            request_id=request_id,
        )
        fresh = Session.objects.for_list().get(pk=session.pk)
        return Response(serializers.SessionDetailSerializer(fresh).data, status=201)


class SessionDetail(SessionView):
    serializer_class = serializers.SessionDetailSerializer

    @extend_schema(
        operation_id="sessions_retrieve",
        responses={200: serializers.SessionDetailSerializer, **PROBLEMS},
    )
    def get(self, request: Request, session_id: str) -> Response:
        """One session."""
        return Response(self.get_serializer(self.get_session()).data)


class OperationView(SessionView):
    """A POST that asks one thing of the session; answered once the Flow has accepted it."""

    def operate(self, session_id: str, asked: dict[str, Any], request_id: str) -> Any:
        raise NotImplementedError

    def run(self, request: Request, session_id: str) -> Response:
        def act(request_id: str) -> Response:
            asked = self.read_body(request)
            answer = self.operate(session_id, asked, request_id)
            return Response(serializers.RpcAnswerSerializer(asdict(answer)).data, status=202)

        return once(self, act)


class MessageList(OperationView):
    serializer_class = serializers.MessageSerializer

    def get_serializer_class(self) -> Any:
        posted = self.request.method == "POST"
        return serializers.SendMessageSerializer if posted else serializers.MessageSerializer

    @extend_schema(
        operation_id="sessions_messages_list",
        responses={200: serializers.MessageSerializer(many=True), **PROBLEMS},
    )
    def get(self, request: Request, session_id: str) -> Response:
        """What people said to the agent, oldest first."""
        return self.page(Message.objects.filter(session=self.get_session()))

    @extend_schema(
        operation_id="sessions_messages_send",
        request=serializers.SendMessageSerializer,
        responses={202: serializers.RpcAnswerSerializer, **PROBLEMS, **CONFLICTS},
        **OPERATION,
    )
    def post(self, request: Request, session_id: str) -> Response:
        """Queue a message; ``id`` is the message's."""
        return self.run(request, session_id)

    def operate(self, session_id: str, asked: dict[str, Any], request_id: str) -> Any:
        return actions.send_message(self.request.user, session_id, asked["text"], request_id)


class QueueList(SessionView):
    serializer_class = serializers.MessageSerializer

    @extend_schema(
        operation_id="sessions_queue_list",
        responses={200: serializers.MessageSerializer(many=True), **PROBLEMS},
    )
    def get(self, request: Request, session_id: str) -> Response:
        """Messages that the agent has not taken yet, oldest first; some may be steered in already."""
        waiting = (Message.State.QUEUED, Message.State.STEERED)
        return self.page(Message.objects.filter(session=self.get_session(), state__in=waiting))


class QueuedMessage(OperationView):
    """One message that waits; 404 ``message_not_found`` once the agent has taken it."""

    serializer_class = serializers.SendMessageSerializer

    @extend_schema(
        operation_id="sessions_queue_edit",
        responses={202: serializers.RpcAnswerSerializer, **PROBLEMS, **CONFLICTS},
        **OPERATION,
    )
    def patch(self, request: Request, session_id: str, message_id: str) -> Response:
        """Put another text in it."""
        return self.run(request, session_id)

    @extend_schema(
        operation_id="sessions_queue_delete",
        request=None,
        responses={202: serializers.RpcAnswerSerializer, **PROBLEMS, **CONFLICTS},
        **OPERATION,
    )
    def delete(self, request: Request, session_id: str, message_id: str) -> Response:
        """Withdraw it."""
        return once(self, self._delete)

    def operate(self, session_id: str, asked: dict[str, Any], request_id: str) -> Any:
        return actions.edit_queued(
            self.request.user, session_id, self.kwargs["message_id"], asked["text"], request_id
        )

    def _delete(self, request_id: str) -> Response:
        answer = actions.delete_queued(
            self.request.user, self.kwargs["session_id"], self.kwargs["message_id"], request_id
        )
        return Response(serializers.RpcAnswerSerializer(asdict(answer)).data, status=202)


class Steer(OperationView):
    serializer_class = serializers.NothingSerializer

    @extend_schema(
        operation_id="sessions_queue_steer",
        responses={202: serializers.RpcAnswerSerializer, **PROBLEMS, **CONFLICTS},
        **OPERATION,
    )
    def post(self, request: Request, session_id: str, message_id: str) -> Response:
        """Have it read before the next model call; approvals of the turn are superseded by it."""
        return self.run(request, session_id)

    def operate(self, session_id: str, asked: dict[str, Any], request_id: str) -> Any:
        return actions.steer(self.request.user, session_id, self.kwargs["message_id"], request_id)


class CancelTurn(OperationView):
    serializer_class = serializers.CancelTurnSerializer

    @extend_schema(
        operation_id="sessions_cancel_turn",
        responses={202: serializers.RpcAnswerSerializer, **PROBLEMS, **CONFLICTS},
        **OPERATION,
    )
    def post(self, request: Request, session_id: str) -> Response:
        """Cancel the turn that is running; the session waits for the next message."""
        return self.run(request, session_id)

    def operate(self, session_id: str, asked: dict[str, Any], request_id: str) -> Any:
        return actions.cancel_turn(self.request.user, session_id, asked["reason"], request_id)


class SkipWait(OperationView):
    serializer_class = serializers.NothingSerializer

    @extend_schema(
        operation_id="sessions_steps_skip",
        responses={202: serializers.RpcAnswerSerializer, **PROBLEMS, **CONFLICTS},
        **OPERATION,
    )
    def post(self, request: Request, session_id: str, step_id: str) -> Response:
        """Go on now instead of when the timer of this DurableWait Step fires."""
        return self.run(request, session_id)

    def operate(self, session_id: str, asked: dict[str, Any], request_id: str) -> Any:
        step_id = self.kwargs["step_id"]
        return actions.skip_wait(self.request.user, session_id, step_id, request_id)


class RaiseSpend(OperationView):
    serializer_class = serializers.RaiseSpendSerializer
    writes = (actions.RAISE_SPEND,)

    @extend_schema(
        operation_id="sessions_raise_spend",
        responses={202: serializers.RpcAnswerSerializer, **PROBLEMS, **CONFLICTS},
        **OPERATION,
    )
    def post(self, request: Request, session_id: str) -> Response:
        """Let a session that a budget blocks spend more; ``state`` is the sum of its raises."""
        return self.run(request, session_id)

    def operate(self, session_id: str, asked: dict[str, Any], request_id: str) -> Any:
        return actions.raise_spend(self.request.user, session_id, asked["amount"], request_id)


class Stop(OperationView):
    serializer_class = serializers.StopSerializer

    @extend_schema(
        operation_id="sessions_stop",
        responses={202: serializers.RpcAnswerSerializer, **PROBLEMS, **CONFLICTS},
        **OPERATION,
    )
    def post(self, request: Request, session_id: str) -> Response:
        """End it: ``complete`` when its queue is done, ``cancel`` now; others need a reason."""
        return self.run(request, session_id)

    def operate(self, session_id: str, asked: dict[str, Any], request_id: str) -> Any:
        return actions.stop(
            self.request.user, session_id, asked["kind"], asked["reason"], request_id
        )


class SessionSettings(OperationView):
    serializer_class = serializers.UpdateSettingsSerializer

    @extend_schema(
        operation_id="sessions_settings_retrieve",
        responses={200: serializers.SessionSettingsSerializer, **PROBLEMS},
    )
    def get(self, request: Request, session_id: str) -> Response:
        """What the next turn begins with, and what of it this session changed."""
        return Response(serializers.SessionSettingsSerializer(self.get_session()).data)

    @extend_schema(
        operation_id="sessions_settings_update",
        responses={202: serializers.RpcAnswerSerializer, **PROBLEMS, **CONFLICTS},
        **OPERATION,
    )
    def patch(self, request: Request, session_id: str) -> Response:
        """Change them from the next turn on. ``revision`` is the one you read; null takes a value
        back to the agent's."""
        return self.run(request, session_id)

    def operate(self, session_id: str, asked: dict[str, Any], request_id: str) -> Any:
        return actions.update_settings(
            self.request.user, session_id, asked["patch"], asked["revision"], request_id
        )
