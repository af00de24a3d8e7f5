"""What a call is answered with when no attempt produced a result, and what holds a call back."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from .wire import ToolCall


@dataclass(frozen=True)
class Answer:
    """The part of an observation that is decided here; no `code` is a success."""

    content: str
    code: str | None = None
    receipt: str | None = None


NEVER = "The call never started and nothing happened."

CANCELLED = {
    "never_started": f"Cancelled. {NEVER}",
    "stopped_before_effect": "Cancelled. The call was stopped before it had any effect.",
    "stopped_after_effect_began": "Cancelled. The call was stopped after its effect had begun; part of it may have happened.",
    "unknown": "Cancelled. Nobody can tell how far the call had come; check the real state.",
}

REFUSALS = {
    "unavailable": "No worker was free to start the call in time.",
    "version_mismatch": "The worker runs another version of this tool than the one the call was checked against.",
    "invalid_arguments": "The arguments are not valid.",
    "cancelled": "Cancelled.",
    "frozen": "An operator has frozen this tool.",
    "tool_failed": "All attempts were made.",
}

ADVICE = {
    "version_mismatch": " Ask again to use the version on offer.",
    "frozen": " Do not call it again in this run; go on without it, or say that it has to wait.",
}


def refused(code: str, details: str, *, checked: int = 0, again: bool = False, effect: str = "") -> Answer:
    """Why a call is not started, what happened, what to do.

    `checked` is the attempt after which a check found no effect; `again` that another delivery of a
    call that may be repeated may have begun.
    """
    happened, receipt = NEVER, "never_started"
    if checked:
        happened = f"A check after attempt {checked} found that the effect did not happen, and no further attempt is made."
        receipt = "stopped_before_effect"
    elif again:
        happened = "It was not started here, but an earlier worker had it and may have begun; to make the call again does no harm."
        receipt = for_effect(effect, "unknown")
    return Answer(f"{REFUSALS[code]} {happened}{ADVICE.get(code, '')}{details}", code, receipt)


def cancelled(receipt: str) -> Answer:
    return Answer(CANCELLED[receipt], "cancelled", receipt)


def for_effect(effect: str, receipt: str) -> str:
    """A tool that changes nothing has no effect to begin."""
    is_open = receipt in ("stopped_after_effect_began", "unknown")
    return "stopped_before_effect" if effect == "read_only" and is_open else receipt


STOPPED = Answer(
    "The worker could not begin in time after it had claimed the call. Nothing happened.", "unavailable", "stopped_before_effect"
)


def frozen_after_claim(words: str) -> Answer:
    happened = "The call was claimed, but it never began and nothing happened."
    return Answer(f"{REFUSALS['frozen']} {happened}{ADVICE['frozen']} {words}", "frozen", "stopped_before_effect")


def doubt_of_start(started: dict[str, Any]) -> Answer:
    """An attempt began elsewhere and left no result."""
    return Answer(
        f"IN DOUBT: attempt {started['attempt']} began on host {started['host']} (worker {started['worker']}) at "
        f"{utc(started['at'])} and left no result. Its effect may have happened. It could land until "
        f"{utc(started['until'])}. Check the real state before you repeat the call.",
        "in_doubt",
        "unknown",
    )


def doubt_of_end(what: str) -> Answer:
    """An attempt of this worker ended without proof of its effect."""
    return Answer(
        f"IN DOUBT: {what} Its effect may have happened before that. The attempt is over here; what it had sent out or "
        "let loose may still act. Check the real state before you repeat the call.",
        "in_doubt",
        "unknown",
    )


def effect_found(says: str) -> Answer:
    return Answer(
        "The attempt's own answer is missing or unclear, but a check found that its effect happened. "
        f"The check says:\n{says}",
        receipt="completed",
    )


def utc(at: int) -> str:
    moment = datetime.datetime.fromtimestamp(at // 1000, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def held(frozen: list[dict[str, Any]], tenant: str, call: ToolCall, effect: str) -> str | None:
    """Why operators hold a call back; the narrowest freeze is named."""
    targets = [({"kind": "tool", "name": call.tool}, f"the tool {call.tool}")]
    if effect == "irreversible":
        targets.append(({"kind": "tenant", "name": tenant}, f"the irreversible tools of tenant {tenant}"))
        targets.append(({"kind": "all"}, "every irreversible tool"))
    for target, words in targets:
        for freeze in frozen:
            if {name: freeze["target"].get(name) for name in target} == target:
                because = f": {freeze['reason']}" if freeze.get("reason") else ""
                return f"Frozen is {words}{because}."
    return None
