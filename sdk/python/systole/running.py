"""How one attempt is carried out: beside the bus, within its limit, stopped when it is told to."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .errors import NothingBegan, Stopped, ToolError
from .shape import as_text
from .tool import Call, Tool, call_parameter

log = logging.getLogger("systole")

STUCK = 70
"""The exit code of a worker that ended itself because a tool did not stop."""


@dataclass(frozen=True)
class Ended:
    """How an attempt ended: `done`, `failed`, `crashed`, `timed_out`, `cancelled`, `not_started`."""

    how: str
    text: str = ""
    why: str = ""
    retryable: bool = False
    receipt: str = ""


class Runner:
    """Runs tools away from the loop that speaks to NATS, so that no tool can starve signs of life."""

    def __init__(self, loop: asyncio.AbstractEventLoop, slots: int, grace: float) -> None:
        self._loop = loop
        self._grace = grace
        self._slots = slots
        self._stuck: list[_Attempt] = []
        # A thread that did not stop keeps its place, so there are more of them than slots.
        self._threads = concurrent.futures.ThreadPoolExecutor(slots * 2, "systole-tool")

    async def run(
        self, tool: Tool, function: Callable[..., Any], call: Call, arguments: dict[str, Any], *, limit: float, cancel: asyncio.Event
    ) -> Ended:
        """`limit` is a moment of the monotonic clock."""
        attempt = _Attempt(self._loop, self._threads, function, call, arguments)
        ended = asyncio.wrap_future(attempt.ended)
        asked = asyncio.ensure_future(cancel.wait())
        await asyncio.wait({ended, asked}, timeout=limit - time.monotonic(), return_when=asyncio.FIRST_COMPLETED)
        is_cancelled, is_late = asked.done(), not asked.done() and not ended.done()
        asked.cancel()
        if not ended.done():
            attempt.stop()
            await asyncio.wait({ended}, timeout=self._grace / 2)
        if ended.done():
            return _verdict(ended.result(), is_cancelled, is_late)
        if tool.effect in ("checkable", "irreversible") and function is tool.function:
            log.critical("tool %s does not stop at its limit; this worker ends, so that its effect does", tool.name)
            os._exit(STUCK)
        log.error("tool %s does not stop; it is left behind", tool.name)
        self._stuck = [left for left in [*self._stuck, attempt] if not left.ended.done()]
        if len(self._stuck) >= self._slots:
            log.critical("%d tools do not stop; this worker ends, so that another has threads", len(self._stuck))
            os._exit(STUCK)
        return Ended("cancelled", receipt="unknown") if is_cancelled else Ended("timed_out")


class _Attempt:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        threads: concurrent.futures.ThreadPoolExecutor,
        function: Callable[..., Any],
        call: Call,
        arguments: dict[str, Any],
    ) -> None:
        if (name := call_parameter(function)) is not None:
            arguments = {**arguments, name: call}
        self._call, self._loop = call, loop
        self._task: asyncio.Task[None] | None = None
        self._thread: concurrent.futures.Future[None] | None = None
        self._lock = threading.Lock()
        self.ended: concurrent.futures.Future[Any] = concurrent.futures.Future()
        if inspect.iscoroutinefunction(function):
            loop.call_soon_threadsafe(self._begin, function, arguments)
        else:
            self._thread = threads.submit(self._run_here, functools.partial(function, **arguments))

    def _begin(self, function: Callable[..., Any], arguments: dict[str, Any]) -> None:
        self._task = self._loop.create_task(self._await(function, arguments))

    async def _await(self, function: Callable[..., Any], arguments: dict[str, Any]) -> None:
        try:
            self._end(await function(**arguments))
        except (Exception, asyncio.CancelledError) as error:
            self._end(error)

    def _run_here(self, function: Callable[[], Any]) -> None:
        try:
            self._end(function())
        except BaseException as error:
            self._end(error)

    def _end(self, outcome: Any) -> None:
        with self._lock:
            if not self.ended.cancelled() and not self.ended.done():
                self.ended.set_result(outcome)

    def stop(self) -> None:
        self._call._cancel()
        if self._thread is not None and self._thread.cancel():
            # It waited for a thread, and must not begin when it gets one.
            self._end(NothingBegan("no thread was free in time", retryable=True))
        self._loop.call_soon_threadsafe(lambda: self._task and self._task.cancel())


def _verdict(outcome: Any, is_cancelled: bool, is_late: bool) -> Ended:
    """A tool that ended by itself is believed, also while it was being stopped."""
    if isinstance(outcome, Stopped):
        if is_late:
            return Ended("timed_out")
        return Ended("cancelled", receipt=f"stopped_{'before_effect' if outcome.before_effect else 'after_effect_began'}")
    if isinstance(outcome, NothingBegan):
        return Ended("not_started", why=outcome.why, retryable=outcome.retryable)
    if isinstance(outcome, ToolError):
        return Ended("failed", why=outcome.why, retryable=outcome.retryable)
    if isinstance(outcome, BaseException):
        if is_cancelled:
            return Ended("cancelled", receipt="stopped_after_effect_began")
        if is_late:
            return Ended("timed_out")
        return Ended("crashed", why=f"{type(outcome).__name__}: {outcome}"[:2000])
    return Ended("done", text=as_text(outcome))
