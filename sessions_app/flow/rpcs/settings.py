"""RPCs on what a session changes of its agent's settings."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules
    from sessions_app.flow.fact import SettingsChanged
    from sessions_app.flow.rpcs.base import SessionState
    from sessions_app.flow.state import RpcAnswer, UpdateSettings
    from sessions_app.flow.terms import Actor


class SettingsRpcs(SessionState):
    """The values are in rows; the Flow says in which order they came and from which turn on."""

    @workflow.update
    async def update_settings(self, rpc: UpdateSettings) -> RpcAnswer:
        return await self._once(rpc, lambda: self._update_settings(rpc), "settings")

    @update_settings.validator
    def check_update_settings(self, rpc: UpdateSettings) -> None:
        if not self._is_new(rpc, "settings"):
            return
        self._check_room()
        self._check_taking_messages()
        if rpc.revision != self._settings_revision:
            raise rules.refuse("stale_settings", revision=self._settings_revision)
        rules.check_size(rpc.patch, self._given.limits.message_bytes)

    async def _update_settings(self, rpc: UpdateSettings) -> tuple[str, str]:
        self._change_settings(rpc.patch, rpc.actor)
        return self._given.session_id, str(self._settings_revision)

    def _change_settings(self, patch: str, by: Actor) -> None:
        self._settings_revision += 1
        self._facts.add(SettingsChanged("settings_changed", self._settings_revision, patch, by))
