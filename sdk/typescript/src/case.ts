/** One call, from its delivery to its observation. The order of the looks is the contract's. */
import { setTimeout as sleep } from "node:timers/promises";

import * as answer from "./answer.js";
import type { Answer, Refusal } from "./answer.js";
import { BusError, TooLarge } from "./errors.js";
import { log } from "./log.js";
import { run, type Ended } from "./running.js";
import type { JsonObject } from "./schema.js";
import { MOST_BYTES, shape, within } from "./shape.js";
import { problems, type Tool } from "./tool.js";
import { EFFECTS, encode, newNonce, placeName, subjectOf, type Delivery, type Effect, type ToolCall } from "./wire.js";
import type { Worker } from "./worker.js";

const LEAST_WAIT = 100;
const LONGEST_WAIT = 60_000;
const FREEZE_LAG = 250;
const SHORTEST = 256;

/** Nothing: acknowledge. A number: give it back for so many milliseconds. */
export type Settled = number | undefined;
/** Somebody else wrote to the start subject, or a check found nothing: look again. */
const AGAIN = "again";

export class Case {
  readonly cancel = new AbortController();
  readonly #effect: Effect;
  readonly #needsStart: boolean;
  readonly #startSubject: string;
  #history: "open" | "closed" | "observed" | undefined;

  constructor(
    readonly worker: Worker,
    readonly tool: Tool,
    readonly delivery: Delivery,
    readonly call: ToolCall,
    readonly trace: string | undefined,
  ) {
    // The stricter of what planner and worker believe.
    this.#effect = EFFECTS[Math.max(EFFECTS.indexOf(call.effect), EFFECTS.indexOf(tool.effect))] ?? "irreversible";
    this.#needsStart = this.#effect === "checkable" || this.#effect === "irreversible";
    this.#startSubject = subjectOf(delivery.place, `start.${call.toolCallId}`);
  }

  private now(): number {
    return this.worker.bus.now(this.delivery.storedAt);
  }

  private get isCancelled(): boolean {
    return this.cancel.signal.aborted;
  }

  async work(): Promise<Settled> {
    // A delivery proves nothing: one that is late, or that was worked on before, may be answered.
    if (this.now() > this.call.startBy || this.delivery.count > 1) {
      if ((await this.lookBack()) === "observed") return undefined;
    }
    return this.#needsStart ? this.withStart() : this.repeatable();
  }

  private async lookBack(): Promise<"open" | "closed" | "observed"> {
    this.#history = await this.worker.bus.answered(this.delivery.place, this.delivery.sequence, this.call.toolCallId);
    return this.#history;
  }

  /** Why the call may not begin. */
  private async refusal(): Promise<Refusal | undefined> {
    if (this.now() > this.call.startBy) return { code: "unavailable", details: "" };
    if (this.call.fingerprint !== this.tool.contract.fingerprint) return { code: "version_mismatch", details: "" };
    const wrong = problems(this.tool, this.call.arguments);
    if (wrong !== undefined) return { code: "invalid_arguments", details: `\n${wrong}` };
    if (this.isCancelled) return { code: "cancelled", details: "" };
    const words = await this.frozen();
    return words === undefined ? undefined : { code: "frozen", details: ` ${words}` };
  }

  private async frozen(): Promise<string | undefined> {
    const frozen = await this.worker.bus.frozen(this.#needsStart ? 0 : FREEZE_LAG);
    return answer.held(frozen, this.delivery.place.tenant, this.call, this.#effect);
  }

  // Calls that may be repeated.

  private async repeatable(): Promise<Settled> {
    if (this.#history === "closed") return undefined;
    const refusal = await this.refusal();
    if (refusal) return this.publish(0, answer.refused(refusal, { again: this.delivery.count > 1, effect: this.#effect }));
    for (let number = 1; ; number += 1) {
      if (this.worker.draining.aborted) return 0;
      const [began, at] = [performance.now(), this.now()];
      const ended = await this.attempt(number, began + this.tool.timeoutMs);
      const mayPass = ended.how === "crashed" || ended.how === "timed_out" || ("retryable" in ended && ended.retryable);
      const pause = this.pauseBefore(number + 1);
      const fits = this.now() + pause + this.tool.timeoutMs <= this.call.deadline;
      if (!mayPass || this.isCancelled || number >= this.tool.maxAttempts || !fits) {
        return this.report(number, this.answerOf(ended, number), ended, at, began);
      }
      if (!(await this.rest(pause))) {
        if (this.worker.draining.aborted) return 0;
        const receipt = answer.forEffect(this.#effect, "stopped_after_effect_began");
        return this.report(number, answer.cancelled(receipt), ended, at, began);
      }
    }
  }

  // Calls whose start is a record.

  private async withStart(): Promise<Settled> {
    for (;;) {
      const found = await this.worker.bus.last(this.#startSubject);
      const expected = found?.sequence ?? 0;
      const made = found === undefined ? 0 : Number(found.body["attempt"] ?? 0);
      if (found === undefined) {
        if (this.#history === "closed") return undefined;
      } else {
        const start = found.body;
        if (start["start"] === "barred") return undefined;
        if (start["start"] !== "started") throw new BusError("a start record that cannot be read");
        if (this.worker.unused.has(found.nonce)) return this.publish(0, answer.STOPPED);
        const left = Number(start["until"]) - this.now();
        if (start["worker"] !== this.worker.instance && left > 0) return Math.min(Math.max(left, LEAST_WAIT), LONGEST_WAIT);
        if ((this.#history ?? (await this.lookBack())) !== "open") return undefined;
        if (this.#effect === "irreversible") return this.publish(0, answer.doubtOfStart(start));
        const probed = await this.probe(made);
        if (probed === "unclear") return this.publish(0, answer.doubtOfStart(start));
        if (probed !== "nothing") return this.publish(0, answer.effectFound(probed.says));
      }
      const usedUp: Refusal = { code: "tool_failed", details: "" };
      const refusal = made > 0 && made >= this.call.maxAttempts ? usedUp : await this.refusal();
      if (refusal) {
        if (await this.bar(expected)) return this.publish(0, answer.refused(refusal, { checked: made }));
        continue;
      }
      if (this.worker.draining.aborted) return 0;
      const settled = await this.start(made + 1, expected);
      if (settled !== AGAIN) return settled;
    }
  }

  /** Says for good that the call does not start; tells whether nobody was first. */
  private async bar(expected: number): Promise<boolean> {
    const body = { kind: "start", start: "barred", tool_call_id: this.call.toolCallId, by: this.worker.instance, at: this.now() };
    const nonce = newNonce();
    const payload = encode(nonce, this.trace, body);
    return (await this.worker.bus.append(this.#startSubject, nonce, payload, { expected })) !== undefined;
  }

  /** Claims attempt `attempt`; the effect begins only after the record is known to be ours. */
  private async start(attempt: number, expected: number): Promise<Settled | typeof AGAIN> {
    const { worker, tool, call } = this;
    const [began, at] = [performance.now(), this.now()];
    if (at > call.startBy) return AGAIN;
    const until = at + tool.timeoutMs + worker.settings.graceMs;
    const owner = { worker: worker.instance, host: worker.settings.host };
    const started = { kind: "start", start: "started", tool_call_id: call.toolCallId, attempt, ...owner, at, until };
    const nonce = newNonce();
    // Should no answer come, the record may lie there, and its effect will never have begun.
    worker.unused.add(nonce);
    const landed = await worker.bus.append(this.#startSubject, nonce, encode(nonce, this.trace, started), { expected });
    worker.unused.delete(nonce);
    if (landed === undefined) return AGAIN;
    const told = await this.heldAtLast(began + worker.settings.graceMs / 2);
    if (told) return this.report(attempt, told, undefined, at, began);
    const ended = await this.runStarted(attempt, began);
    if (this.#effect === "checkable" && leavesDoubt(ended)) {
      const probed = await this.probe(attempt);
      if (probed === "unclear") return this.report(attempt, answer.doubtOfStart(started), undefined, at, began);
      if (probed !== "nothing") return this.report(attempt, answer.effectFound(probed.says), undefined, at, began);
      await this.rest(this.pauseBefore(attempt + 1));
      return AGAIN;
    }
    return this.report(attempt, this.answerOf(ended, 1), ended, at, began);
  }

  /** Why the effect must not begin although the call is claimed: the claim may have taken time. */
  private async heldAtLast(latest: number): Promise<Answer | undefined> {
    let words: string | undefined;
    try {
      words = await this.frozen();
    } catch {
      return answer.STOPPED;
    }
    if (this.isCancelled) return answer.cancelled("stopped_before_effect");
    if (performance.now() > latest) return answer.STOPPED;
    return words === undefined ? undefined : answer.frozenAfterClaim(words);
  }

  /** A try of which nothing began is repeated within the same limit. */
  private async runStarted(attempt: number, began: number): Promise<Ended> {
    const limit = began + this.tool.timeoutMs;
    for (let tries = 1; ; tries += 1) {
      const ended = await this.attempt(attempt, limit);
      const pause = this.pauseBefore(tries + 1);
      const mayPass = ended.how === "not_started" && ended.retryable && !this.isCancelled && tries < this.tool.maxAttempts;
      if (!mayPass || performance.now() + pause > limit || !(await this.rest(pause))) return ended;
    }
  }

  /** Whether the effect is there. No cancel stops a check. */
  private async probe(attempt: number): Promise<{ says: string } | "nothing" | "unclear"> {
    const { tool, worker } = this;
    if (!tool.probe) return "unclear";
    const how = { limit: performance.now() + tool.timeoutMs, graceMs: worker.settings.graceMs };
    const ended = await run(tool, tool.probe, this.call.arguments, this.job(attempt), how);
    if (ended.how === "failed" || (ended.how === "done" && ended.text === "false")) return "nothing";
    if (ended.how !== "done" || ended.text === "") return "unclear";
    const says = ended.text === "true" ? "The effect is there." : ended.text;
    return { says: shape(worker.redactor.redact(says), tool.resultTokens).content };
  }

  // Attempts and what comes of them.

  private job(attempt: number) {
    const { toolCallId, idempotencyKey } = this.call;
    return { toolCallId, idempotencyKey, attempt, progress: () => this.worker.bus.tell(this.delivery, "+WPI") };
  }

  private attempt(attempt: number, limit: number): Promise<Ended> {
    const how = { limit, cancel: this.cancel.signal, graceMs: this.worker.settings.graceMs };
    return run(this.tool, this.tool.run, { ...this.call.arguments }, this.job(attempt), how);
  }

  private answerOf(ended: Ended, attempts: number): Answer {
    const provesNothing = this.#effect === "irreversible";
    const limit = this.tool.timeoutMs;
    switch (ended.how) {
      case "done":
        return this.isCancelled ? { content: "", receipt: "completed" } : { content: "" };
      case "failed":
        return { content: ended.why, code: "tool_failed" };
      case "crashed":
        if (provesNothing) return answer.doubtOfEnd(`the tool crashed (${ended.why}).`);
        return { content: `The tool crashed: ${ended.why}`, code: "tool_crashed" };
      case "timed_out": {
        if (provesNothing) return answer.doubtOfEnd(`the tool did not end within ${limit} ms and was stopped.`);
        const tries = attempts > 1 ? `, as did ${attempts} attempts in all` : "";
        return { content: `The tool did not end within ${limit} ms and was stopped${tries}.`, code: "timed_out" };
      }
      case "cancelled":
        return answer.cancelled(answer.forEffect(this.#effect, ended.receipt));
      case "not_started": {
        const content = `The tool could not be started, nothing happened: ${ended.why}`;
        return { content, code: "tool_not_started", receipt: "never_started" };
      }
    }
  }

  private pauseBefore(attempt: number): number {
    const pause = Math.min(this.tool.backoffMs * 2 ** Math.min(attempt - 2, 16), 60_000);
    return pause * (1 + Math.random() / 2);
  }

  /** Whether nothing came in between: a cancel, or the end of this worker. */
  private async rest(pause: number): Promise<boolean> {
    const signal = AbortSignal.any([this.cancel.signal, this.worker.draining]);
    return sleep(pause, true, { signal }).catch(() => false);
  }

  /** The result in its budget; the whole of a larger one is stored first. */
  private async report(attempt: number, told: Answer, ended: Ended | undefined, at: number, began: number): Promise<Settled> {
    const redact = (text: string): string => this.worker.redactor.redact(text);
    const { content: output, full } = shape(ended?.how === "done" ? redact(ended.text) : "", this.tool.resultTokens);
    const words = within(redact(told.content), MOST_BYTES);
    let content = [words, output].filter((part) => part !== "").join("\n") || "The tool ended well and wrote nothing.";
    let artifact: JsonObject | undefined;
    if (full !== undefined) {
      try {
        artifact = await this.worker.bus.keep(this.delivery.place, full);
      } catch (error) {
        log.warn(`a full result was not stored: ${error}`);
        content += "\n[The full result could not be stored.]";
      }
    }
    return this.publish(attempt, { ...told, content }, { ...(artifact ? { artifact } : {}), at, took: performance.now() - began });
  }

  /** Publishes until it is known to lie there: only this process has the result. */
  private async publish(attempt: number, told: Answer, more: { artifact?: JsonObject; at?: number; took?: number } = {}): Promise<Settled> {
    const { call, worker } = this;
    const stamp = {
      worker: worker.instance,
      fingerprint: this.tool.contract.fingerprint,
      arguments_hash: call.argumentsHash,
      started_at: more.at ?? this.now(),
      duration_ms: Math.round(more.took ?? 0),
    };
    const nonce = newNonce();
    const dedup = `${placeName(this.delivery.place)}/${call.toolCallId}/${attempt}`;
    let content = told.content;
    for (let pause = 200; ; pause = Math.min(pause * 2, 5000)) {
      const body: JsonObject = {
        kind: "observation",
        tool_call_id: call.toolCallId,
        attempt,
        ...(told.code ? { code: told.code } : {}),
        content,
        ...(more.artifact ? { artifact: more.artifact } : {}),
        ...(told.receipt ? { receipt: told.receipt } : {}),
        stamp,
      };
      try {
        await worker.bus.append(subjectOf(this.delivery.place, "obs"), nonce, encode(nonce, this.trace, body), { dedup });
        log.info(`call ${call.toolCallId} of ${call.tool}: ${told.code ?? "ok"}`);
        return undefined;
      } catch (error) {
        if (error instanceof TooLarge && content.length > SHORTEST) {
          content = `${within(content, Math.floor(Buffer.byteLength(content) / 2))}\n[... the rest is left out ...]`;
          continue;
        }
        if (!(error instanceof BusError) || error instanceof TooLarge || worker.draining.aborted) throw error;
        log.warn(`an observation was not published: ${error.message}`);
      }
      await sleep(pause);
    }
  }
}

/** Whether the effect may or may not have happened. */
function leavesDoubt(ended: Ended): boolean {
  if (ended.how === "failed") return ended.retryable;
  return ended.how === "crashed" || ended.how === "timed_out" || (ended.how === "cancelled" && ended.receipt === "unknown");
}
