"""The worker: its tools, its tasks, and how it stops."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from . import wire
from .bus import Bus
from .case import Case
from .errors import BusError, InvalidTool
from .running import Runner
from .settings import Settings
from .shape import Redactor, Secret
from .tool import Tool, declare
from .wire import Delivery, Malformed, Place, ToolCall, TooNew

log = logging.getLogger("systole")

F = TypeVar("F", bound=Callable[..., Any])

OFFER_EVERY = 10.0
MEASURE_EVERY = 30.0
UNREADABLE = 60.0
AGAIN = 1.0
NO_SLOT = 0.2
RUNNING_HERE = 5.0


class Worker:
    """Serves tools. Declare them with `tool`, then `run`."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings.from_env()
        self.instance = f"py-{secrets.token_hex(8)}"
        """This life of this process."""
        self.tools: dict[str, Tool] = {}
        self.redactor = Redactor()
        self.unused: set[str] = set()
        """Nonces of start records that may lie there and whose effect certainly never began."""
        self.bus: Bus
        self.runner: Runner
        self.draining: asyncio.Event
        self._running: dict[tuple[Place, str], Case] = {}
        self._held: set[Delivery] = set()
        self._failure: BaseException | None = None

    def tool(self, **options: Any) -> Callable[[F], F]:
        """Declares a function as a tool; the options are those of `systole.declare`."""

        def decorate(function: F) -> F:
            self.add(declare(function, **options))
            return function

        return decorate

    def add(self, tool: Tool) -> None:
        if tool.name in self.tools:
            raise InvalidTool(f"there are two tools of the name {tool.name}")
        self.tools[tool.name] = tool

    def secret(self, name: str) -> Secret:
        """A secret from the environment, which no result and no log line gives away."""
        secret = Secret.from_env(name)
        self.redactor.add(secret)
        return secret

    def run(self) -> None:
        """Works until SIGTERM or SIGINT, then ends what is under way and gives back the rest.

        Tools run on this thread's loop and on threads; the bus has a thread of its own, so that a tool
        which blocks starves no sign of life.
        """
        if not self.tools:
            raise InvalidTool("a worker without tools has nothing to do")
        tools = asyncio.new_event_loop()
        bus = asyncio.new_event_loop()
        self.runner = Runner(tools, self.settings.slots, self.settings.grace)

        def serve() -> None:
            try:
                bus.run_until_complete(self._serve())
            except BaseException as error:
                self._failure = error
            tools.call_soon_threadsafe(tools.stop)

        async def ready() -> None:
            self.draining = asyncio.Event()

        bus.run_until_complete(ready())
        asked = 0

        def stop() -> None:
            nonlocal asked
            asked += 1
            if asked > 1:
                os._exit(130)
            bus.call_soon_threadsafe(self.draining.set)

        for number in (signal.SIGTERM, signal.SIGINT):
            tools.add_signal_handler(number, stop)
        threading.Thread(target=serve, name="systole-bus", daemon=True).start()
        tools.run_forever()
        if isinstance(self._failure, (BusError, ValueError)):
            print(f"systole: {self._failure}", file=sys.stderr, flush=True)
            os._exit(1)
        if self._failure is not None:
            raise self._failure
        # A thread that a tool never gave back must not keep the process.
        logging.shutdown()
        os._exit(0)

    async def _serve(self) -> None:
        connecting = asyncio.ensure_future(Bus.connect(self.settings, self.instance, self._closed))
        asked = asyncio.ensure_future(self.draining.wait())
        await asyncio.wait({connecting, asked}, return_when=asyncio.FIRST_COMPLETED)
        if not connecting.done():
            connecting.cancel()
            return
        self.bus = connecting.result()
        await self.bus.on_cancel(self._cancel)
        upkeep = [asyncio.create_task(task) for task in (self._offer(), self._measure(), self._keep_alive())]
        slots = asyncio.Semaphore(self.settings.slots)
        pulls = [
            asyncio.create_task(self._pull(part, tool, slots))
            for part in range(self.settings.partitions)
            for tool in self.tools.values()
        ]
        log.info("worker %s serves %s", self.instance, ", ".join(self.tools))
        await self.draining.wait()
        await self._drain(upkeep, pulls)

    def _closed(self) -> None:
        if hasattr(self, "bus") and not self.draining.is_set():
            log.critical("NATS has closed the connection for good; this worker ends")
            os._exit(1)

    async def _drain(self, upkeep: list[asyncio.Task[None]], pulls: list[asyncio.Task[None]]) -> None:
        log.info("draining: %d calls are under way", len(self._running))
        upkeep[0].cancel()
        try:
            await self.bus.withdraw(self.instance)
        except BusError as error:
            log.debug("the offer was not taken back; it fades: %s", error)
        # An open pull may still bring a call, which is given back.
        calls = [task for task in asyncio.all_tasks() if task.get_name() == "call"]
        await asyncio.wait([*pulls, *calls], timeout=self.settings.drain)
        for delivery in list(self._held):
            await self.bus.settle(delivery, 0.0)
        try:
            await asyncio.wait_for(self.bus.client.drain(), 2)
        except Exception as error:
            log.debug("the connection was not drained: %s", type(error).__name__)

    async def _pull(self, part: int, tool: Tool, slots: asyncio.Semaphore) -> None:
        while not self.draining.is_set():
            # Waiting for a slot before the pull leaves calls to workers that are free.
            async with slots:
                pass
            try:
                delivery = await self.bus.pull(part, tool.name)
            except BusError as error:
                log.warning("a pull failed: %s", error)
                await asyncio.sleep(0.5)
                continue
            if delivery is None:
                continue
            if self.draining.is_set() or slots.locked():
                await self.bus.settle(delivery, 0.0 if self.draining.is_set() else NO_SLOT)
                continue
            await slots.acquire()
            task = asyncio.create_task(self._handle(tool, delivery), name="call")
            task.add_done_callback(lambda _: slots.release())

    async def _handle(self, tool: Tool, delivery: Delivery) -> None:
        self._held.add(delivery)
        try:
            settled = await self._judge(tool, delivery)
        except BusError as error:
            log.warning("a call was given back: %s", error)
            settled = AGAIN
        except Exception:
            log.exception("a call was given back")
            settled = AGAIN
        self._held.discard(delivery)
        await self.bus.settle(delivery, settled)

    async def _judge(self, tool: Tool, delivery: Delivery) -> float | None:
        try:
            envelope = wire.decode(delivery.payload)
            call = ToolCall.of(envelope["body"])
        except TooNew as error:
            log.warning("a newer call was given back: %s", error)
            return UNREADABLE
        except Malformed as error:
            log.error("an unreadable call at %d: %s", delivery.sequence, error)
            parked = await self.bus.parked(delivery.place, delivery.sequence)
            return None if parked else UNREADABLE
        key = (delivery.place, call.tool_call_id)
        if key in self._running:
            return RUNNING_HERE
        case = Case(self, tool, delivery, call, envelope.get("traceparent"))
        self._running[key] = case
        try:
            return await case.work()
        finally:
            del self._running[key]

    def _cancel(self, place: Place, tool_call_id: str) -> None:
        if case := self._running.get((place, tool_call_id)):
            case.cancel.set()

    async def _offer(self) -> None:
        contracts = [tool.contract for tool in self.tools.values()]
        while True:
            pause = OFFER_EVERY
            try:
                await self.bus.offer(self.instance, contracts)
            except BusError as error:
                log.warning("tools are not on offer: %s", error)
                pause = AGAIN
            await asyncio.sleep(pause)

    async def _measure(self) -> None:
        while True:
            await asyncio.sleep(MEASURE_EVERY)
            try:
                await self.bus.measure()
            except BusError as error:
                log.warning("the server's time was not measured: %s", error)

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(self.bus.ack_wait / 3)
            for delivery in list(self._held):
                await self.bus.tell(delivery, b"+WPI")
