/** What a call is answered with when no attempt produced a result, and what holds a call back. */
import type { Freeze } from "./bus.js";
import type { Receipt } from "./running.js";
import type { JsonObject } from "./schema.js";
import type { Effect, ToolCall } from "./wire.js";

/** The part of an observation that is decided here; no `code` is a success. */
export type Answer = { content: string; code?: string; receipt?: Receipt };

const NEVER = "The call never started and nothing happened.";

const REFUSALS = {
  unavailable: "No worker was free to start the call in time.",
  version_mismatch: "The worker runs another version of this tool than the one the call was checked against.",
  invalid_arguments: "The arguments are not valid.",
  cancelled: "Cancelled.",
  frozen: "An operator has frozen this tool.",
  tool_failed: "All attempts were made.",
} as const;

const ADVICE: Partial<Record<keyof typeof REFUSALS, string>> = {
  version_mismatch: " Ask again to use the version on offer.",
  frozen: " Do not call it again in this run; go on without it, or say that it has to wait.",
};

export type Refusal = { code: keyof typeof REFUSALS; details: string };

/** Why a call is not started, what happened, what to do. `checked` is the attempt after which a check
 * found no effect; `again` that another delivery of a call that may be repeated may have begun. */
export function refused(refusal: Refusal, known: { checked?: number; again?: boolean; effect?: Effect }): Answer {
  let [happened, receipt]: [string, Receipt] = [NEVER, "never_started"];
  if (known.checked) {
    happened = `A check after attempt ${known.checked} found that the effect did not happen, and no further attempt is made.`;
    receipt = "stopped_before_effect";
  } else if (known.again && known.effect) {
    happened = "It was not started here, but an earlier worker had it and may have begun; to make the call again does no harm.";
    receipt = forEffect(known.effect, "unknown");
  }
  const { code, details } = refusal;
  return { content: `${REFUSALS[code]} ${happened}${ADVICE[code] ?? ""}${details}`, code, receipt };
}

const CANCELLED: Record<Receipt, string> = {
  never_started: `Cancelled. ${NEVER}`,
  stopped_before_effect: "Cancelled. The call was stopped before it had any effect.",
  stopped_after_effect_began: "Cancelled. The call was stopped after its effect had begun; part of it may have happened.",
  completed: "The call had completed before the cancel reached it.",
  unknown: "Cancelled. Nobody can tell how far the call had come; check the real state.",
};

export const cancelled = (receipt: Receipt): Answer => ({ content: CANCELLED[receipt], code: "cancelled", receipt });

/** A tool that changes nothing has no effect to begin. */
export function forEffect(effect: Effect, receipt: Receipt): Receipt {
  const isOpen = receipt === "stopped_after_effect_began" || receipt === "unknown";
  return effect === "read_only" && isOpen ? "stopped_before_effect" : receipt;
}

export const STOPPED: Answer = {
  content: "The worker could not begin in time after it had claimed the call. Nothing happened.",
  code: "unavailable",
  receipt: "stopped_before_effect",
};

export const frozenAfterClaim = (words: string): Answer => ({
  content: `${REFUSALS.frozen} The call was claimed, but it never began and nothing happened.${ADVICE.frozen} ${words}`,
  code: "frozen",
  receipt: "stopped_before_effect",
});

const doubt = (text: string): Answer => ({ content: `IN DOUBT: ${text}`, code: "in_doubt", receipt: "unknown" });
const utc = (at: unknown): string => new Date(Number(at)).toISOString().replace(/\.\d+Z$/, "Z");

/** An attempt began elsewhere and left no result. */
export const doubtOfStart = (started: JsonObject): Answer =>
  doubt(
    `attempt ${started["attempt"]} began on host ${started["host"]} (worker ${started["worker"]}) at ${utc(started["at"])} and ` +
      `left no result. Its effect may have happened. It could land until ${utc(started["until"])}. ` +
      "Check the real state before you repeat the call.",
  );

/** An attempt of this worker ended without proof of its effect. */
export const doubtOfEnd = (what: string): Answer =>
  doubt(
    `${what} Its effect may have happened before that. The attempt is over here; what it had sent out or let loose may ` +
      "still act. Check the real state before you repeat the call.",
  );

export const effectFound = (says: string): Answer => ({
  content: `The attempt's own answer is missing or unclear, but a check found that its effect happened. The check says:\n${says}`,
  receipt: "completed",
});

/** Why operators hold a call back; the narrowest freeze is named. */
export function held(frozen: Freeze[], tenant: string, call: ToolCall, effect: Effect): string | undefined {
  const isIrreversible = effect === "irreversible";
  const targets = [
    { kind: "tool", name: call.tool, words: `the tool ${call.tool}`, counts: true },
    { kind: "tenant", name: tenant, words: `the irreversible tools of tenant ${tenant}`, counts: isIrreversible },
    { kind: "all", name: undefined, words: "every irreversible tool", counts: isIrreversible },
  ];
  for (const { kind, name, words } of targets.filter((target) => target.counts)) {
    const freeze = frozen.find(({ target }) => target.kind === kind && (name === undefined || target.name === name));
    if (freeze) return `Frozen is ${words}${freeze.reason ? `: ${freeze.reason}` : ""}.`;
  }
  return undefined;
}
