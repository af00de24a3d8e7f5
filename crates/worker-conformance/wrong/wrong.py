"""A worker that breaks the one rule which its argument names: each must be found.

`python wrong.py RULE`, with sdk/python and sdk/python/examples on the path.
"""

import asyncio
import dataclasses
import os
import sys
from typing import Any

import conformance
import nats
from systole import answer, running, wire
from systole import worker as workers
from systole.bus import Bus
from systole.case import Case
from systole.running import Ended
from systole.tool import Call, Tool
from systole.worker import Worker

RULE = sys.argv[1]
worker = conformance.worker


def change(owner: Any, name: str, make: Any) -> None:
    """Puts `make(what was there)` in its place."""
    setattr(owner, name, make(getattr(owner, name)))


def answers(value: Any) -> Any:
    """A coroutine function that looks at nothing."""

    async def answer_so(*_: Any, **__: Any) -> Any:
        return value

    return lambda _: answer_so


def call_with(**fields: Any) -> None:
    def make(of: Any) -> Any:
        return lambda body: dataclasses.replace(of(body), **fields)

    change(wire.ToolCall, "of", make)


def wrong_contract() -> None:
    worker.tools["cf_echo"].contract["timeout_ms"] = 1999


def wrong_consumer() -> None:
    def make(ask: Any) -> Any:
        async def changed(self: Bus, subject: str, body: Any, headers: Any = None) -> Any:
            if "CONSUMER.CREATE" in subject:
                body["config"]["deliver_policy"] = "all"
                del body["config"]["opt_start_time"]
            return await ask(self, subject, body, headers)

        return changed

    change(Bus, "ask", make)


def no_dedup() -> None:
    def make(append: Any) -> Any:
        async def changed(self: Bus, *args: Any, dedup: Any = None, **more: Any) -> Any:
            return await append(self, *args, **more)

        return changed

    change(Bus, "append", make)


def no_fence() -> None:
    """Starts whatever lies there."""

    def make(append: Any) -> Any:
        async def changed(self: Bus, *args: Any, expected: Any = None, **more: Any) -> Any:
            return await append(self, *args, **more)

        return changed

    change(Bus, "append", make)
    change(Bus, "last", answers(None))


def fence_ignored() -> None:
    """Takes a refused claim for its own."""

    def make(append: Any) -> Any:
        async def changed(self: Bus, *args: Any, **more: Any) -> Any:
            landed = await append(self, *args, **more)
            return 1 if landed is None else landed

        return changed

    change(Bus, "append", make)


def one_partition() -> None:
    def make(pull: Any) -> Any:
        async def changed(self: Bus, part: int, tool: str) -> Any:
            if part == 0:
                return await pull(self, part, tool)
            await asyncio.sleep(1)
            return None

        return changed

    change(Bus, "pull", make)


def strict_fields() -> None:
    def make(of: Any) -> Any:
        def changed(body: dict[str, Any]) -> Any:
            if "of_tomorrow" in body:
                raise wire.Malformed("an unknown field")
            return of(body)

        return changed

    change(wire.ToolCall, "of", make)


def late() -> None:
    def make(refusal: Any) -> Any:
        async def changed(self: Case) -> Any:
            self.call = dataclasses.replace(self.call, start_by=self.now() + 3_600_000)
            return await refusal(self)

        return changed

    change(Case, "refusal", make)


def any_version() -> None:
    def make(refusal: Any) -> Any:
        async def changed(self: Case) -> Any:
            self.call = dataclasses.replace(self.call, fingerprint=self.tool.contract["fingerprint"])
            return await refusal(self)

        return changed

    change(Case, "refusal", make)


def artifact_forgotten() -> None:
    async def keep(_: Bus, __: Any, text: str) -> dict[str, Any]:
        data = text.encode()
        return {"id": wire.sha256(data), "bytes": len(data)}

    change(Bus, "keep", lambda _: keep)


def effect_first() -> None:
    def make(start: Any) -> Any:
        async def changed(self: Case, attempt: int, expected: int) -> Any:
            ended = await self.run_started(attempt, asyncio.get_running_loop().time())
            change(Case, "run_started", answers(ended))
            return await start(self, attempt, expected)

        return changed

    change(Case, "start", make)


def impatient() -> None:
    def make(last: Any) -> Any:
        async def changed(self: Bus, subject: str) -> Any:
            found = await last(self, subject)
            if found is not None:
                found[1]["body"]["until"] = 0
            return found

        return changed

    change(Bus, "last", make)


def other_nonce() -> None:
    def make(last: Any) -> Any:
        async def changed(self: Bus, subject: str) -> Any:
            found = await last(self, subject)
            if found is not None:
                found[1]["nonce"] = "0" * 16
            return found

        return changed

    change(Bus, "last", make)


def silent() -> None:
    async def keep_alive(_: Worker) -> None:
        await asyncio.sleep(3600)

    change(Worker, "_keep_alive", lambda _: keep_alive)


def verdict(edit: Any) -> None:
    change(running, "_verdict", lambda verdict: lambda *args: edit(verdict(*args)))


def other_keys() -> None:
    def make(job: Any) -> Any:
        def changed(self: Case, attempt: int) -> Call:
            made: Call = job(self, attempt)
            made.idempotency_key += f"/{attempt}"
            return made

        return changed

    change(Case, "job", make)


def no_doubt() -> None:
    def make(answer_of: Any) -> Any:
        def changed(self: Case, ended: Ended, attempts: int) -> Any:
            self.effect = "idempotent"
            return answer_of(self, ended, attempts)

        return changed

    change(Case, "answer_of", make)


def deaf() -> None:
    change(Worker, "_cancel", lambda _: lambda *_: None)


def twice() -> None:
    class Forgetful(dict):  # type: ignore[type-arg]
        def __contains__(self, _: object) -> bool:
            return False

        def __delitem__(self, key: Any) -> None:
            self.pop(key, None)

    worker._running = Forgetful()
    change(Bus, "answered", answers("open"))


def stubborn() -> None:
    class Sure(set):  # type: ignore[type-arg]
        def discard(self, _: object) -> None:
            pass

    def make(init: Any) -> Any:
        def changed(self: Bus, *args: Any) -> None:
            init(self, *args)
            self._consumers = Sure()

        return changed

    change(Bus, "__init__", make)


def talkative() -> None:
    def make(judge: Any) -> Any:
        async def changed(self: Worker, tool: Tool, delivery: Any) -> Any:
            workers.log.info("%s", delivery.payload)
            return await judge(self, tool, delivery)

        return changed

    change(Worker, "_judge", make)


def ack_first() -> None:
    def make(handle: Any) -> Any:
        async def changed(self: Worker, tool: Tool, delivery: Any) -> None:
            await self.bus.settle(delivery, None)
            await handle(self, tool, delivery)

        return changed

    change(Worker, "_handle", make)


def no_way_back() -> None:
    change(nats, "connect", lambda connect: lambda *args, **more: connect(*args, **{**more, "allow_reconnect": False}))


def abrupt() -> None:
    async def drain(*_: Any) -> None:
        os._exit(3)

    change(Worker, "_drain", lambda _: drain)


WRONG = {
    "offer.contracts": wrong_contract,
    "offer.renewed": lambda: setattr(workers, "OFFER_EVERY", 1000.0),
    "consumer.settings": wrong_consumer,
    "call.observation": no_dedup,
    "call.partitions": one_partition,
    "call.unknown_fields": strict_fields,
    "call.too_new": lambda: setattr(wire, "READER", 1000),
    "call.unreadable": lambda: change(Bus, "parked", answers(True)),
    "call.arguments": lambda: change(Tool, "problems", lambda _: lambda *_: None),
    "call.arguments_barred": lambda: change(Case, "bar", answers(True)),
    "call.fingerprint": any_version,
    "call.start_by": late,
    "call.already_answered": lambda: change(Bus, "answered", answers("open")),
    "call.already_closed": lambda: change(Bus, "answered", answers("open")),
    "call.artifact": artifact_forgotten,
    "call.frozen": lambda: change(Bus, "frozen", answers([])),
    "start.precedes": effect_first,
    "start.barred": no_fence,
    "start.lost_race": fence_ignored,
    "start.foreign": impatient,
    "start.foreign_effect": lambda: change(Case, "probe", answers((False, ""))),
    "start.foreign_nothing": lambda: change(Case, "probe", answers((None, ""))),
    "start.used_up": lambda: call_with(max_attempts=99),
    "try.heartbeat": silent,
    "try.again": lambda: change(Case, "pause_before", lambda _: lambda *_: 1e6),
    "try.not_again": lambda: verdict(lambda ended: dataclasses.replace(ended, retryable=True)),
    "try.same_key": other_keys,
    "try.limit": lambda: setattr(Tool, "timeout", 30.0),
    "try.limit_in_doubt": no_doubt,
    "try.crash_in_doubt": no_doubt,
    "try.nothing_began": lambda: verdict(lambda ended: dataclasses.replace(ended, how="crashed")),
    "cancel.running": deaf,
    "cancel.irreversible": lambda: change(answer, "for_effect", lambda _: lambda *_: "never_started"),
    "again.while_running": twice,
    "again.history": lambda: change(Bus, "answered", answers("open")),
    "consumer.recreated": stubborn,
    "log.secrets": talkative,
    "death.irreversible": no_fence,
    "death.read_only": ack_first,
    "stop.drains": abrupt,
    "bus.restarted": no_way_back,
    "claim.answer_lost": other_nonce,
}

WRONG[RULE]()
worker.run()
