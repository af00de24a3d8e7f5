/** How one attempt is carried out: within its limit, stopped when it is told to. */
import { NothingBegan, Stopped, ToolError } from "./errors.js";
import { log } from "./log.js";
import type { JsonObject } from "./schema.js";
import { asText } from "./shape.js";
import type { Call, Tool } from "./tool.js";

/** The exit code of a worker that ended itself because a tool did not stop. */
const STUCK = 70;

export type Receipt = "never_started" | "stopped_before_effect" | "stopped_after_effect_began" | "completed" | "unknown";

/** How an attempt ended. */
export type Ended =
  | { how: "done"; text: string }
  | { how: "failed" | "not_started"; why: string; retryable: boolean }
  | { how: "crashed"; why: string }
  | { how: "timed_out" }
  | { how: "cancelled"; receipt: Receipt };

type Outcome = { value: unknown } | { error: unknown };
type Job = Omit<Call, "signal">;

/** Runs a tool or its probe until `limit`, a moment of the monotonic clock. */
export async function run(
  tool: Tool,
  work: (args: JsonObject, call: Call) => unknown,
  args: JsonObject,
  job: Job,
  how: { limit: number; cancel?: AbortSignal; graceMs: number },
): Promise<Ended> {
  const stop = new AbortController();
  const outcome: Promise<Outcome> = new Promise<unknown>((resolve) => resolve(work(args, { ...job, signal: stop.signal }))).then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), Math.max(0, how.limit - performance.now()));
  });
  let hear: (() => void) | undefined;
  const cancelled = new Promise<"cancelled">((resolve) => {
    hear = () => resolve("cancelled");
    if (how.cancel?.aborted) hear();
    how.cancel?.addEventListener("abort", hear);
  });
  const first = await Promise.race([outcome, late, cancelled]);
  clearTimeout(timer);
  if (hear) how.cancel?.removeEventListener("abort", hear);
  if (typeof first !== "string") return verdict(first);
  stop.abort();
  const last = await Promise.race([outcome, new Promise<"stuck">((resolve) => setTimeout(() => resolve("stuck"), how.graceMs / 2))]);
  if (last !== "stuck") return verdict(last, first);
  if ((tool.effect === "checkable" || tool.effect === "irreversible") && work === tool.run) {
    log.error(`tool ${tool.name} does not stop at its limit; this worker ends, so that its effect does`);
    process.exit(STUCK);
  }
  log.error(`tool ${tool.name} does not stop; it is left behind`);
  return first === "late" ? { how: "timed_out" } : { how: "cancelled", receipt: "unknown" };
}

/** A tool that ended by itself is believed, also while it was being stopped. */
function verdict(outcome: Outcome, stopped?: "late" | "cancelled"): Ended {
  if ("value" in outcome) return { how: "done", text: asText(outcome.value) };
  const { error } = outcome;
  const isStop = error instanceof Stopped;
  if (isStop && stopped !== "late") {
    return { how: "cancelled", receipt: error.beforeEffect ? "stopped_before_effect" : "stopped_after_effect_began" };
  }
  if (error instanceof NothingBegan) return { how: "not_started", why: error.message, retryable: error.retryable };
  if (error instanceof ToolError) return { how: "failed", why: error.message, retryable: error.retryable };
  if (stopped === "late" || isStop) return { how: "timed_out" };
  if (stopped === "cancelled") return { how: "cancelled", receipt: "stopped_after_effect_began" };
  return { how: "crashed", why: String(error).slice(0, 2000) };
}
