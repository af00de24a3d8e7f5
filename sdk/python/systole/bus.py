"""What a worker asks of NATS. Every wait has an end; what got no answer is repeated identically."""

from __future__ import annotations

import asyncio
import base64
import datetime
import json
import logging
import time
from collections.abc import Callable
from typing import Any

import nats
import nats.errors
from nats.aio.client import Client
from nats.js.errors import ObjectNotFoundError

from . import wire
from .errors import BusError, TooLarge
from .settings import Settings
from .wire import Delivery, Place

log = logging.getLogger("systole")

REQUEST = 5.0
PULL = 2.0
LONGEST_WAY = 0.25
"""An answer about the time that took longer counts only where nothing better is known."""
OLDEST_CALL = 600
"""Seconds: no call may start so long after it was dispatched, so a new consumer begins there."""
REPEATS = 20
NO_MESSAGE, WRONG_LAST, WRONG_LAST_UNNAMED, TOO_LARGE = 10037, 10071, 10164, 10054


class Refused(BusError):
    """An answer of the server that says no."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.code = int(error.get("err_code", 0))
        self.status = int(error.get("code", 0))
        super().__init__(f"{error.get('description', 'refused')} ({self.code})")


class Bus:
    def __init__(self, client: Client, settings: Settings) -> None:
        self.client = client
        self.settings = settings
        self.ack_wait = settings.ack_wait
        self._time: tuple[int, float] | None = None
        self._frozen: tuple[float, list[dict[str, Any]]] | None = None
        self._consumers: set[tuple[int, str]] = set()

    @classmethod
    async def connect(cls, settings: Settings, name: str, closed: Callable[[], None]) -> Bus:
        """Connects, and waits until the deployment's streams and buckets are there. `closed` is called when
        the connection has ended for good, such as by a login that is refused."""

        async def on_closed() -> None:
            closed()

        seen = ["no server answered"]

        async def trouble(error: Exception) -> None:
            seen[0] = str(error) or type(error).__name__
            log.warning("NATS: %s", seen[0])

        async def reach() -> Bus:
            client = await nats.connect(
                settings.servers,
                name=name,
                error_cb=trouble,
                closed_cb=on_closed,
                connect_timeout=2,
                ping_interval=2,
                max_outstanding_pings=2,
                reconnect_time_wait=0.2,
                max_reconnect_attempts=-1,
                **settings.options(),
            )
            bus = cls(client, settings)
            while True:
                try:
                    await bus.look_around()
                    return bus
                except BusError as error:
                    seen[0] = f"the streams of Systole are not there: {error}"
                await asyncio.sleep(0.2)

        try:
            return await asyncio.wait_for(reach(), settings.wait)
        except asyncio.TimeoutError as error:
            raise BusError(f"not ready within {settings.wait} s: {seen[0]}") from error

    async def look_around(self) -> None:
        """Streams and buckets are made by planners and gateways; a worker waits for them."""
        streams = [f"SY_{part}" for part in range(self.settings.partitions)]
        for stream in [*streams, "KV_SY_TOOLS", "KV_SY_FREEZES", "OBJ_SY_ARTIFACTS"]:
            await self.ask(f"$JS.API.STREAM.INFO.{stream}", {})
        await self.measure()
        try:
            await self.ask(f"$JS.API.STREAM.INFO.SY_{self.settings.partitions}", {})
        except Refused:
            return
        raise ValueError(f"SYSTOLE_PARTITIONS is {self.settings.partitions}, and the deployment has more: their calls would wait")

    async def ask(self, subject: str, body: Any, headers: dict[str, str] | None = None) -> dict[str, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        if len(data) > self.client.max_payload > 0:
            raise TooLarge(f"{len(data)} bytes, the server takes {self.client.max_payload}")
        try:
            answer = await self.client.request(subject, data, timeout=REQUEST, headers=headers)
            found: dict[str, Any] = json.loads(answer.data)
        except (nats.errors.Error, asyncio.TimeoutError, OSError, ValueError) as error:
            raise BusError(f"no answer: {type(error).__name__}") from error
        if "error" in found:
            refused = Refused(found["error"])
            raise TooLarge(str(refused)) if refused.code == TOO_LARGE else refused
        return found

    # Time.

    async def measure(self) -> None:
        asked = time.monotonic()
        info = await self.ask("$JS.API.STREAM.INFO.SY_0", {})
        text = str(info["ts"])[:23].rstrip("Z").ljust(20, ".").ljust(23, "0")
        moment = datetime.datetime.fromisoformat(text + "+00:00")
        if self._time is None or time.monotonic() - asked <= LONGEST_WAY:
            # Taken for the time of the question: what is believed too early starts nothing late.
            self._time = (round(moment.timestamp() * 1000), asked)

    def now(self, floor: int) -> int:
        """Server time in milliseconds, never earlier than a record that is known."""
        if self._time is None:
            return max(floor, round(time.time() * 1000))
        at, then = self._time
        return max(floor, at + round((time.monotonic() - then) * 1000))

    # Calls.

    async def ensure_consumer(self, part: int, tool: str) -> None:
        if (part, tool) in self._consumers:
            return
        stream, name = f"SY_{part}", f"tool_{tool}"
        try:
            info = await self.ask(f"$JS.API.CONSUMER.INFO.{stream}.{name}", {})
        except Refused:
            since = datetime.datetime.fromtimestamp(self.now(0) / 1000 - OLDEST_CALL, datetime.timezone.utc)
            subject = f"sy.{part}.*.*.plan.tool_call.{tool}"
            config = {
                "name": name,
                "durable_name": name,
                "filter_subject": subject,
                "ack_policy": "explicit",
                "ack_wait": round(self.settings.ack_wait * 1e9),
                "max_deliver": -1,
                "max_ack_pending": 1_000_000,
                "max_waiting": 16_384,
                "deliver_policy": "by_start_time",
                "opt_start_time": since.isoformat().replace("+00:00", "Z"),
                "replay_policy": "instant",
            }
            create = {"stream_name": stream, "config": config, "action": ""}
            info = await self.ask(f"$JS.API.CONSUMER.CREATE.{stream}.{name}.{subject}", create)
        # Whoever made it chose the ack wait, and signs of life have to be in time for it.
        self.ack_wait = min(self.ack_wait, info["config"]["ack_wait"] / 1e9)
        self._consumers.add((part, tool))

    async def pull(self, part: int, tool: str) -> Delivery | None:
        """The next call, or nothing after two seconds: a dead worker's pull is soon forgotten."""
        await self.ensure_consumer(part, tool)
        subject = f"$JS.API.CONSUMER.MSG.NEXT.SY_{part}.tool_{tool}"
        request = json.dumps({"batch": 1, "expires": round(PULL * 1e9)}).encode()
        try:
            # A delivery keeps the subject of its record, so it needs a subscription of its own.
            message = await self.client.request(subject, request, timeout=PULL + 0.75, old_style=True)
        except nats.errors.NoRespondersError:
            self._consumers.discard((part, tool))
            await asyncio.sleep(0.2)
            return None
        except (nats.errors.Error, asyncio.TimeoutError) as error:
            self._consumers.discard((part, tool))
            log.debug("a pull of %s ended without an answer: %s", tool, type(error).__name__)
            await asyncio.sleep(0.2)
            return None
        status = (message.headers or {}).get("Status")
        if status is not None:
            if status == "409":
                self._consumers.discard((part, tool))
            if status not in ("404", "408"):
                await asyncio.sleep(0.2)
            return None
        delivery = Delivery.of(message.subject, message.reply, message.data)
        if delivery is None:
            log.error("a message of no thread was set aside: %s", message.subject)
            await self.client.publish(message.reply, b"+TERM")
        return delivery

    async def settle(self, delivery: Delivery, after: float | None) -> None:
        """Acknowledges, or gives back for so many seconds."""
        body = b"+ACK" if after is None else b"-NAK"
        if after:
            body = f'-NAK {{"delay": {round(after * 1e9)}}}'.encode()
        await self.tell(delivery, body)

    async def tell(self, delivery: Delivery, body: bytes) -> None:
        try:
            await self.client.publish(delivery.reply, body)
        except (nats.errors.Error, OSError) as error:
            log.debug("a delivery was not settled; it comes back: %s", type(error).__name__)

    # Records.

    async def append(
        self, subject: str, nonce: str, payload: bytes, *, expected: int | None = None, dedup: str | None = None
    ) -> int | None:
        """Appends once; `None` when somebody else was first. What raises may or may not have landed."""
        headers = {"Nats-Msg-Id": dedup} if dedup else {}
        if expected is not None:
            headers["Nats-Expected-Last-Subject-Sequence"] = str(expected)
        unanswered = False
        for _ in range(REPEATS):
            try:
                return int((await self.ask(subject, payload, headers))["seq"])
            except TooLarge:
                raise
            except Refused as error:
                if error.code in (WRONG_LAST, WRONG_LAST_UNNAMED):
                    if not unanswered:
                        return None
                    last = await self.last(subject)
                    if last is not None:
                        return last[0] if last[1].get("nonce") == nonce else None
                elif error.status != 503:
                    raise
                # While a stream has no leader nobody knows whether a message was taken.
                unanswered = True
            except BusError:
                unanswered = True
            await asyncio.sleep(0.1)
        raise BusError("an append was not answered")

    async def last(self, subject: str) -> tuple[int, dict[str, Any]] | None:
        """The newest record of a subject, as the leader has it."""
        return await self._message(subject.split(".")[1], {"last_by_subj": subject})

    async def answered(self, place: Place, after: int, tool_call_id: str) -> str:
        """`open`, `closed` by a planner, or `observed`."""
        for leaf, word in (("obs", "observed"), ("plan.fact", "closed")):
            async for _, body in self.records(place, leaf, after):
                if body.get("fact") == "call_closed":
                    body = body.get("observation", {})
                if body.get("tool_call_id") == tool_call_id and "attempt" in body:
                    return word
        return "open"

    async def parked(self, place: Place, sequence: int) -> bool:
        """Whether a planner has set a record aside."""
        async for _, body in self.records(place, "plan.fact", sequence):
            if body.get("fact") == "parked" and body.get("sequence") == sequence:
                return True
        return False

    async def records(self, place: Place, leaf: str, after: int) -> Any:
        part, subject = str(place.partition), place.subject(leaf)
        while (found := await self._message(part, {"seq": after + 1, "next_by_subj": subject})) is not None:
            after, envelope = found
            yield after, envelope.get("body", {})

    async def _message(self, part: str, query: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        try:
            answer = await self.ask(f"$JS.API.STREAM.MSG.GET.SY_{part}", query)
        except Refused as error:
            if error.code == NO_MESSAGE:
                return None
            raise
        message = answer["message"]
        try:
            envelope = json.loads(base64.b64decode(message.get("data", "")))
        except ValueError:
            envelope = {}
        return int(message["seq"]), envelope if isinstance(envelope, dict) else {}

    # What is beside the records.

    async def frozen(self, age: float) -> list[dict[str, Any]]:
        """What operators hold back, as it was asked for no longer than `age` seconds ago."""
        if self._frozen is not None and time.monotonic() - self._frozen[0] < age:
            return self._frozen[1]
        asked, query = time.monotonic(), {"last_by_subj": "$KV.SY_FREEZES.frozen"}
        try:
            answer = await self.ask("$JS.API.STREAM.MSG.GET.KV_SY_FREEZES", query)
            frozen = json.loads(base64.b64decode(answer["message"].get("data", "")))
        except Refused as error:
            if error.code != NO_MESSAGE:
                raise
            frozen = []
        self._frozen = (asked, frozen)
        return list(frozen)

    async def offer(self, worker: str, tools: list[dict[str, Any]]) -> None:
        """Tells planners which tools there are; it fades after thirty seconds."""
        await self.ask(f"$KV.SY_TOOLS.{worker}", {"worker": worker, "tools": tools})

    async def withdraw(self, worker: str) -> None:
        await self.ask(f"$KV.SY_TOOLS.{worker}", b"", {"KV-Operation": "DEL"})

    async def keep(self, place: Place, text: str) -> dict[str, Any]:
        """Stores a payload outside its message; one that is there is left alone."""
        data = text.encode()
        digest = wire.sha256(data)
        name = f"{place.tenant}/{place.thread}/{digest}"
        try:
            store = await self.client.jetstream(timeout=REQUEST).object_store("SY_ARTIFACTS")
            try:
                await store.get_info(name)
            except ObjectNotFoundError:
                await store.put(name, data)
        except (nats.errors.Error, asyncio.TimeoutError, OSError) as error:
            raise BusError(f"an artifact was not stored: {type(error).__name__}") from error
        return {"id": digest, "bytes": len(data)}

    async def on_cancel(self, cancel: Callable[[Place, str], None]) -> None:
        """Hears hints; one that is lost only makes things slower."""

        async def hear(message: Any) -> None:
            try:
                _, tenant, thread = message.subject.split(".")
                hint = json.loads(message.data)
                part = int((message.headers or {}).get("Sy-Partition", ""))
                if hint["hint"] == "cancel_call":
                    cancel(Place(part, tenant, thread), hint["tool_call_id"])
            except (ValueError, KeyError, TypeError):
                log.debug("a hint that is none")

        await self.client.subscribe("syctl.*.*", cb=hear)
