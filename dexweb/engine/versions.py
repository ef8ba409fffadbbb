"""Versions of workers: which code takes the sessions on, said to the engine by DEXWEB_WORKER_VERSION.

Sessions follow the current version, in the middle of a turn too (AUTO_UPGRADE in the engine's
words). Pinned to the version that they began under they would hold its workers for as long as
somebody is waited for; the saved histories see to it that newer code can take an older session on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from temporalio.api.enums.v1 import WorkerDeploymentVersionStatus
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
    SetWorkerDeploymentCurrentVersionRequest,
    SetWorkerDeploymentRampingVersionRequest,
)
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

# All pools are one deployment: a release is rolled out to all of them together.
DEPLOYMENT = "dexweb"
SEEN_LIMIT = 15.0
# What workers that were just started may still change: no worker, or none for one of the queues.
REFUSALS = (RPCStatusCode.NOT_FOUND, RPCStatusCode.FAILED_PRECONDITION)


class VersionNotChanged(Exception):
    """The engine refused; the message says why and what to do."""


@dataclass(frozen=True)
class Version:
    """`state`: created, inactive, current, ramping, draining (sessions may still be on it) or drained.

    `percent` is of the sessions, for a ramping one.
    """

    name: str
    state: str
    percent: float = 0


@dataclass(frozen=True)
class Versions:
    """`current` is "" while workers without a version serve; `known` has the newest first."""

    current: str
    known: list[Version]


def deployment_config(version: str, otherwise: str) -> WorkerDeploymentConfig:
    """What a worker says of itself: ``version``, or where there is none a mere name for its code."""
    behavior = VersioningBehavior.AUTO_UPGRADE if version else VersioningBehavior.UNSPECIFIED
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(DEPLOYMENT, version or otherwise),
        use_worker_versioning=bool(version),
        default_versioning_behavior=behavior,
    )


async def versions(client: Client) -> Versions:
    """What the engine knows; nothing before the first worker with a version has asked for work."""
    request = DescribeWorkerDeploymentRequest(
        namespace=client.namespace, deployment_name=DEPLOYMENT
    )
    try:
        found = await client.workflow_service.describe_worker_deployment(request)
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        return Versions("", [])
    info = found.worker_deployment_info
    routing = info.routing_config
    ramping = routing.ramping_deployment_version.build_id
    known = sorted(info.version_summaries, key=lambda one: one.create_time.ToNanoseconds())
    return Versions(
        routing.current_deployment_version.build_id,
        [
            Version(
                name := one.deployment_version.build_id,
                _state(one.status),
                routing.ramping_version_percentage if name == ramping else 0,
            )
            for one in reversed(known)
        ],
    )


async def set_current(client: Client, version: str) -> None:
    """Let ``version`` take all sessions on; "" gives them to workers without one.

    Waits a moment for workers that were just started. Raises `VersionNotChanged`.
    """
    request = SetWorkerDeploymentCurrentVersionRequest(
        namespace=client.namespace, deployment_name=DEPLOYMENT, build_id=version
    )
    await _once_seen(
        version, lambda: client.workflow_service.set_worker_deployment_current_version(request)
    )


async def ramp(client: Client, version: str, percent: float) -> None:
    """Let ``version`` take ``percent`` of the sessions on; 0 ends the ramp. Raises `VersionNotChanged`."""
    request = SetWorkerDeploymentRampingVersionRequest(
        namespace=client.namespace,
        deployment_name=DEPLOYMENT,
        build_id=version if percent else "",
        percentage=percent,
    )
    await _once_seen(
        version, lambda: client.workflow_service.set_worker_deployment_ramping_version(request)
    )


async def _once_seen(version: str, change: Callable[[], Awaitable[object]]) -> None:
    """Make the change, again while the engine has not seen a worker of ``version`` yet."""
    loop = asyncio.get_running_loop()
    give_up = loop.time() + SEEN_LIMIT
    while True:
        try:
            await change()
            return
        except RPCError as error:
            if error.status not in REFUSALS:
                raise
            if loop.time() >= give_up:
                raise _refusal(version, error) from error
        await asyncio.sleep(0.2)


def _refusal(version: str, error: RPCError) -> VersionNotChanged:
    if error.status != RPCStatusCode.NOT_FOUND:
        return VersionNotChanged(f"The engine refused: {error.message}.")
    return VersionNotChanged(
        f"No worker of version “{version}” has asked for work. Start one with "
        f"DEXWEB_WORKER_VERSION={version}, then try again."
    )


def _state(status: WorkerDeploymentVersionStatus.ValueType) -> str:
    name = WorkerDeploymentVersionStatus.Name(status)
    return name.removeprefix("WORKER_DEPLOYMENT_VERSION_STATUS_").lower()
