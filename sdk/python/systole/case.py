"""One call, from its delivery to its observation. The order of the looks is the contract's."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import TYPE_CHECKING, Any

from . import answer, shape, wire
from .answer import Answer
from .errors import BusError, TooLarge
from .running import Ended
from .tool import Call, Tool
from .wire import Delivery, ToolCall

if TYPE_CHECKING:
    from .worker import Worker

log = logging.getLogger("systole")

LEAST_WAIT, LONGEST_WAIT = 0.1, 60.0
FREEZE_LAG = 0.25
SHORTEST = 256
AGAIN = -1.0
"""Somebody else wrote to the start subject, or a check found nothing: look again."""


class Case:
    """Works on one call. `work` answers with `None` to acknowledge, or with seconds to give it back."""

    def __init__(self, worker: Worker, tool: Tool, delivery: Delivery, call: ToolCall, trace: str | None) -> None:
        self.worker, self.bus = worker, worker.bus
        self.tool, self.delivery, self.call, self.trace = tool, delivery, call, trace
        self.place = delivery.place
        self.cancel = asyncio.Event()
        self.start_subject = self.place.subject(f"start.{call.tool_call_id}")
        # The stricter of what planner and worker believe.
        self.effect = max(call.effect, tool.effect, key=wire.EFFECTS.index)
        self.needs_start = self.effect in ("checkable", "irreversible")
        self.history: str | None = None

    def now(self) -> int:
        return self.bus.now(self.delivery.stored_at)

    async def work(self) -> float | None:
        # A delivery proves nothing: one that is late, or that was worked on before, may be answered.
        if self.now() > self.call.start_by or self.delivery.count > 1:
            await self.look_back()
            if self.history == "observed":
                return None
        return await (self.with_start() if self.needs_start else self.repeatable())

    async def look_back(self) -> None:
        self.history = await self.bus.answered(self.place, self.delivery.sequence, self.call.tool_call_id)

    async def refusal(self) -> tuple[str, str] | None:
        """Why the call may not begin: a code and details."""
        call = self.call
        if self.now() > call.start_by:
            return "unavailable", ""
        if call.fingerprint != self.tool.contract["fingerprint"]:
            return "version_mismatch", ""
        if problems := self.tool.problems(call.arguments):
            return "invalid_arguments", f"\n{problems}"
        if self.cancel.is_set():
            return "cancelled", ""
        if words := await self.frozen():
            return "frozen", f" {words}"
        return None

    async def frozen(self) -> str | None:
        age = 0.0 if self.needs_start else FREEZE_LAG
        return answer.held(await self.bus.frozen(age), self.place.tenant, self.call, self.effect)

    # Calls that may be repeated.

    async def repeatable(self) -> float | None:
        if self.history == "closed":
            return None
        if refusal := await self.refusal():
            again = self.delivery.count > 1
            return await self.publish(0, answer.refused(*refusal, again=again, effect=self.effect))
        number, most = 1, self.tool.contract["retry"]["max_attempts"]
        while True:
            if self.worker.draining.is_set():
                return 0.0
            began, at = time.monotonic(), self.now()
            ended = await self.run(number, limit=began + self.tool.timeout)
            may_pass = ended.retryable or ended.how in ("crashed", "timed_out")
            pause = self.pause_before(number + 1)
            fits = self.now() + (pause + self.tool.timeout) * 1000 <= self.call.deadline
            if not may_pass or self.cancel.is_set() or number >= most or not fits:
                return await self.report(number, self.answer_of(ended, number), ended.text, at, began)
            if not await self.rest(pause):
                if self.worker.draining.is_set():
                    return 0.0
                receipt = answer.for_effect(self.effect, "stopped_after_effect_began")
                return await self.report(number, answer.cancelled(receipt), ended.text, at, began)
            number += 1

    # Calls whose start is a record.

    async def with_start(self) -> float | None:
        while True:
            found = await self.bus.last(self.start_subject)
            made, expected = 0, 0
            if found is not None:
                expected, envelope = found
                start = envelope.get("body", {})
                if start.get("start") == "barred":
                    return None
                if start.get("start") != "started":
                    raise BusError("a start record that cannot be read")
                if envelope["nonce"] in self.worker.unused:
                    return await self.publish(0, answer.STOPPED)
                made = int(start["attempt"])
                if start["worker"] != self.worker.instance and self.now() < start["until"]:
                    left = (start["until"] - self.now()) / 1000
                    return float(min(max(left, LEAST_WAIT), LONGEST_WAIT))
                if self.history is None:
                    await self.look_back()
                if self.history != "open":
                    return None
                if self.effect == "irreversible":
                    return await self.publish(0, answer.doubt_of_start(start))
                happened, says = await self.probe(made)
                if happened:
                    return await self.publish(0, answer.effect_found(says))
                if happened is None:
                    return await self.publish(0, answer.doubt_of_start(start))
            elif self.history == "closed":
                return None
            refusal = ("tool_failed", "") if made and made >= self.call.max_attempts else await self.refusal()
            if refusal is not None:
                told = answer.refused(*refusal, checked=made)
                if await self.bar(expected):
                    return await self.publish(0, told)
                continue
            if self.worker.draining.is_set():
                return 0.0
            if (settled := await self.start(made + 1, expected)) != AGAIN:
                return settled

    async def bar(self, expected: int) -> bool:
        """Says for good that the call does not start; tells whether nobody was first."""
        body: dict[str, Any] = {"kind": "start", "start": "barred", "tool_call_id": self.call.tool_call_id}
        body |= {"by": self.worker.instance, "at": self.now()}
        nonce = wire.new_nonce()
        payload = wire.encode(nonce, self.trace, body)
        return await self.bus.append(self.start_subject, nonce, payload, expected=expected) is not None

    async def start(self, attempt: int, expected: int) -> float | None:
        """Claims attempt `attempt`; the effect begins only after the record is known to be ours."""
        began, at, grace = time.monotonic(), self.now(), self.worker.settings.grace
        if at > self.call.start_by:
            return AGAIN
        started: dict[str, Any] = {"kind": "start", "start": "started", "tool_call_id": self.call.tool_call_id}
        started |= {"attempt": attempt, "worker": self.worker.instance, "host": self.worker.settings.host}
        started |= {"at": at, "until": at + round((self.tool.timeout + grace) * 1000)}
        nonce = wire.new_nonce()
        # Should no answer come, the record may lie there, and its effect will never have begun.
        self.worker.unused.add(nonce)
        payload = wire.encode(nonce, self.trace, started)
        landed = await self.bus.append(self.start_subject, nonce, payload, expected=expected)
        self.worker.unused.discard(nonce)
        if landed is None:
            return AGAIN
        if told := await self.held_at_last(began + grace / 2):
            return await self.report(attempt, told, "", at, began)
        ended = await self.run_started(attempt, began)
        if self.effect == "checkable" and leaves_doubt(ended):
            happened, says = await self.probe(attempt)
            if happened:
                return await self.report(attempt, answer.effect_found(says), "", at, began)
            if happened is None:
                return await self.report(attempt, answer.doubt_of_start(started), "", at, began)
            await self.rest(self.pause_before(attempt + 1))
            return AGAIN
        return await self.report(attempt, self.answer_of(ended, 1), ended.text, at, began)

    async def held_at_last(self, latest: float) -> Answer | None:
        """Why the effect must not begin although the call is claimed: the claim may have taken time."""
        try:
            words = await self.frozen()
        except BusError:
            return answer.STOPPED
        if self.cancel.is_set():
            return answer.cancelled("stopped_before_effect")
        if time.monotonic() > latest:
            return answer.STOPPED
        return answer.frozen_after_claim(words) if words else None

    async def run_started(self, attempt: int, began: float) -> Ended:
        """A try of which nothing began is repeated within the same limit."""
        tries, limit = 1, began + self.tool.timeout
        while True:
            ended = await self.run(attempt, limit=limit)
            pause = self.pause_before(tries + 1)
            may_pass = ended.how == "not_started" and ended.retryable and not self.cancel.is_set()
            used_up = tries >= self.tool.contract["retry"]["max_attempts"]
            if not may_pass or used_up or time.monotonic() + pause > limit or not await self.rest(pause):
                return ended
            tries += 1

    async def probe(self, attempt: int) -> tuple[bool | None, str]:
        """Whether the effect is there; nothing when the check cannot tell. No cancel stops a check."""
        if self.tool.probe is None:
            return None, ""
        limit = time.monotonic() + self.tool.timeout
        job = self.job(attempt)
        ended = await self.worker.runner.run(
            self.tool, self.tool.probe, job, self.call.arguments, limit=limit, cancel=asyncio.Event()
        )
        if ended.how == "failed":
            return False, ""
        if ended.how != "done" or ended.text in ("null", ""):
            return None, ""
        if ended.text == "false":
            return False, ""
        says = "The effect is there." if ended.text == "true" else ended.text
        return True, shape.shape(self.worker.redactor.redact(says), self.tool.contract["result_tokens"])[0]

    # Attempts and what comes of them.

    def job(self, attempt: int) -> Call:
        loop = asyncio.get_running_loop()

        def alive() -> None:
            asyncio.run_coroutine_threadsafe(self.bus.tell(self.delivery, b"+WPI"), loop)

        call = self.call
        return Call(tool_call_id=call.tool_call_id, idempotency_key=call.idempotency_key, attempt=attempt, alive=alive)

    async def run(self, attempt: int, *, limit: float) -> Ended:
        runner, tool = self.worker.runner, self.tool
        arguments = dict(self.call.arguments)
        return await runner.run(tool, tool.function, self.job(attempt), arguments, limit=limit, cancel=self.cancel)

    def answer_of(self, ended: Ended, attempts: int) -> Answer:
        proves_nothing, limit = self.effect == "irreversible", round(self.tool.timeout * 1000)
        match ended.how:
            case "done":
                return Answer("", receipt="completed" if self.cancel.is_set() else None)
            case "failed":
                return Answer(ended.why, "tool_failed")
            case "crashed" if proves_nothing:
                return answer.doubt_of_end(f"the tool crashed ({ended.why}).")
            case "crashed":
                return Answer(f"The tool crashed: {ended.why}", "tool_crashed")
            case "timed_out" if proves_nothing:
                return answer.doubt_of_end(f"the tool did not end within {limit} ms and was stopped.")
            case "timed_out":
                tries = f", as did {attempts} attempts in all" if attempts > 1 else ""
                return Answer(f"The tool did not end within {limit} ms and was stopped{tries}.", "timed_out")
            case "cancelled":
                return answer.cancelled(answer.for_effect(self.effect, ended.receipt))
            case _:
                text = f"The tool could not be started, nothing happened: {ended.why}"
                return Answer(text, "tool_not_started", "never_started")

    def pause_before(self, attempt: int) -> float:
        pause = min(self.tool.contract["retry"]["backoff_ms"] / 1000 * 2 ** min(attempt - 2, 16), 60.0)
        return float(pause * (1 + random.random() / 2))

    async def rest(self, pause: float) -> bool:
        """Whether nothing came in between: a cancel, or the end of this worker."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self.cancel, self.worker.draining)]
        done, waiting = await asyncio.wait(waits, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
        for wait in waiting:
            wait.cancel()
        return not done

    async def report(self, attempt: int, told: Answer, output: str, at: int, began: float) -> float | None:
        """The result in its budget; the whole of a larger one is stored first."""
        redact = self.worker.redactor.redact
        content, full = shape.shape(redact(output), self.tool.contract["result_tokens"])
        words = shape.within(redact(told.content), shape.MOST_BYTES)
        content = "\n".join(part for part in (words, content) if part)
        artifact = None
        if full is not None:
            try:
                artifact = await self.bus.keep(self.place, full)
            except BusError as error:
                log.warning("a full result was not stored: %s", error)
                content += "\n[The full result could not be stored.]"
        told = Answer(content or "The tool ended well and wrote nothing.", told.code, told.receipt)
        return await self.publish(attempt, told, artifact, at, time.monotonic() - began)

    async def publish(
        self, attempt: int, told: Answer, artifact: dict[str, Any] | None = None, at: int | None = None, took: float = 0.0
    ) -> float | None:
        """Publishes until it is known to lie there: only this process has the result."""
        call, content, pause = self.call, told.content, 0.2
        nonce, dedup = wire.new_nonce(), f"{self.place}/{call.tool_call_id}/{attempt}"
        while True:
            body: dict[str, Any] = {"kind": "observation", "tool_call_id": call.tool_call_id, "attempt": attempt}
            body |= {"code": told.code} if told.code else {}
            body |= {"content": content}
            body |= {"artifact": artifact} if artifact else {}
            body |= {"receipt": told.receipt} if told.receipt else {}
            body["stamp"] = {
                "worker": self.worker.instance,
                "fingerprint": self.tool.contract["fingerprint"],
                "arguments_hash": call.arguments_hash,
                "started_at": self.now() if at is None else at,
                "duration_ms": round(took * 1000),
            }
            payload = wire.encode(nonce, self.trace, body)
            try:
                await self.bus.append(self.place.subject("obs"), nonce, payload, dedup=dedup)
                log.info("call %s of %s: %s", call.tool_call_id, call.tool, told.code or "ok")
                return None
            except TooLarge:
                if len(content) <= SHORTEST:
                    raise
                content = f"{content[: len(content) // 2]}\n[... the rest is left out ...]"
                continue
            except BusError as error:
                if self.worker.draining.is_set():
                    raise
                log.warning("an observation was not published: %s", error)
            await asyncio.sleep(pause)
            pause = min(pause * 2, 5.0)


def leaves_doubt(ended: Ended) -> bool:
    """Whether the effect may or may not have happened."""
    if ended.how == "failed":
        return ended.retryable
    return ended.how in ("crashed", "timed_out") or (ended.how == "cancelled" and ended.receipt == "unknown")
