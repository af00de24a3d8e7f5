/** What a worker asks of NATS. Every wait has an end; what got no answer is repeated identically. */
import { setTimeout as sleep } from "node:timers/promises";

import { jetstream } from "@nats-io/jetstream";
import { Objm } from "@nats-io/obj";
import { connect, createInbox, headers, type Msg, type NatsConnection } from "@nats-io/transport-node";

import { BusError, TooLarge } from "./errors.js";
import { log } from "./log.js";
import type { JsonObject } from "./schema.js";
import { connectionOptions, type Settings } from "./settings.js";
import { deliveryOf, isObject, sha256, subjectOf, type Delivery, type Place } from "./wire.js";

const REQUEST = 5000;
const PULL = 2000;
/** An answer about the time that took longer counts only where nothing better is known. */
const LONGEST_WAY = 250;
/** No call may start so long after it was dispatched, so a new consumer begins there. */
const OLDEST_CALL = 600_000;
const REPEATS = 20;
const NO_MESSAGE = 10037;
const WRONG_LAST = [10071, 10164];
const TOO_LARGE = 10054;

/** An answer of the server that says no. */
export class Refused extends BusError {
  constructor(readonly code: number, readonly status: number, why: string) {
    super(`${why} (${code})`);
  }
}

export type Freeze = { target: { kind: string; name?: string }; reason?: string };
export type Found = { sequence: number; nonce: string; body: JsonObject };

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : String(error));
const timestamp = (text: string): number => Date.parse(text.replace(/(\.\d{3})\d+/, "$1"));

export class Bus {
  ackWaitMs: number;
  #time: { at: number; then: number } | undefined;
  #frozen: { at: number; list: Freeze[] } | undefined;
  #consumers = new Set<string>();

  private constructor(readonly client: NatsConnection, readonly settings: Settings) {
    this.ackWaitMs = settings.ackWaitMs;
  }

  /** Connects, and waits until the streams and buckets that planners and gateways make are there. */
  static async connect(settings: Settings, name: string): Promise<Bus> {
    const latest = performance.now() + settings.waitMs;
    const late = new AbortController();
    const connecting = connect(connectionOptions(settings, name));
    const client = await Promise.race([connecting, sleep(settings.waitMs, undefined, { signal: late.signal })]);
    late.abort();
    if (client === undefined) throw new BusError(`NATS did not answer within ${settings.waitMs} ms`);
    const bus = new Bus(client, settings);
    for (;;) {
      try {
        await bus.lookAround();
        return bus;
      } catch (error) {
        if (error instanceof RangeError) throw error;
        if (performance.now() > latest) throw new BusError(`the streams of Systole are not there: ${error}`);
        await sleep(200);
      }
    }
  }

  private async lookAround(): Promise<void> {
    const streams = Array.from({ length: this.settings.partitions }, (_, part) => `SY_${part}`);
    for (const stream of [...streams, "KV_SY_TOOLS", "KV_SY_FREEZES", "OBJ_SY_ARTIFACTS"]) {
      await this.ask(`$JS.API.STREAM.INFO.${stream}`, {});
    }
    await this.measure();
    const { partitions } = this.settings;
    const next = await this.ask(`$JS.API.STREAM.INFO.SY_${partitions}`, {}).catch((error: unknown) => error);
    if (next instanceof Refused) return;
    if (next instanceof BusError) throw next;
    throw new RangeError(`SYSTOLE_PARTITIONS is ${partitions}, and the deployment has more: their calls would wait`);
  }

  /** Asks for JSON. */
  async ask(subject: string, body: JsonObject | string, head: Record<string, string> = {}): Promise<JsonObject> {
    const data = typeof body === "string" ? body : JSON.stringify(body);
    const most = this.client.info?.max_payload ?? 0;
    if (most > 0 && Buffer.byteLength(data) > most) throw new TooLarge(`the server takes ${most} bytes`);
    const sent = headers();
    for (const [name, value] of Object.entries(head)) sent.set(name, value);
    let found: unknown;
    try {
      const options = Object.keys(head).length > 0 ? { timeout: REQUEST, headers: sent } : { timeout: REQUEST };
      found = (await this.client.request(subject, data, options)).json();
    } catch (error) {
      throw new BusError(`no answer: ${nameOf(error)}`);
    }
    if (!isObject(found)) throw new BusError("not an answer");
    const error = found["error"];
    if (!isObject(error)) return found;
    const refused = new Refused(Number(error["err_code"] ?? 0), Number(error["code"] ?? 0), String(error["description"]));
    throw refused.code === TOO_LARGE ? new TooLarge(refused.message) : refused;
  }

  // Time.

  async measure(): Promise<void> {
    const asked = performance.now();
    const info = await this.ask("$JS.API.STREAM.INFO.SY_0", {});
    if (this.#time === undefined || performance.now() - asked <= LONGEST_WAY) {
      // Taken for the time of the question: what is believed too early starts nothing late.
      this.#time = { at: timestamp(String(info["ts"])), then: asked };
    }
  }

  /** Server time in milliseconds, never earlier than a record that is known. */
  now(floor: number): number {
    const time = this.#time;
    return Math.max(floor, time === undefined ? Date.now() : Math.round(time.at + performance.now() - time.then));
  }

  // Calls.

  private async ensureConsumer(part: number, tool: string): Promise<void> {
    const key = `${part} ${tool}`;
    if (this.#consumers.has(key)) return;
    const name = `tool_${tool}`;
    let info: JsonObject;
    try {
      info = await this.ask(`$JS.API.CONSUMER.INFO.SY_${part}.${name}`, {});
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const filter_subject = `sy.${part}.*.*.plan.tool_call.${tool}`;
      const config = {
        name,
        durable_name: name,
        filter_subject,
        ack_policy: "explicit",
        ack_wait: this.settings.ackWaitMs * 1_000_000,
        max_deliver: -1,
        max_ack_pending: 1_000_000,
        max_waiting: 16_384,
        deliver_policy: "by_start_time",
        opt_start_time: new Date(this.now(0) - OLDEST_CALL).toISOString(),
        replay_policy: "instant",
      };
      const create = { stream_name: `SY_${part}`, config, action: "" };
      info = await this.ask(`$JS.API.CONSUMER.CREATE.SY_${part}.${name}.${filter_subject}`, create);
    }
    // Whoever made it chose the ack wait, and signs of life have to be in time for it.
    const config = info["config"];
    if (isObject(config)) this.ackWaitMs = Math.min(this.ackWaitMs, Number(config["ack_wait"]) / 1_000_000);
    this.#consumers.add(key);
  }

  /** The next call, or nothing after two seconds: a dead worker's pull is soon forgotten. */
  async pull(part: number, tool: string): Promise<Delivery | undefined> {
    await this.ensureConsumer(part, tool);
    const request = JSON.stringify({ batch: 1, expires: PULL * 1_000_000 });
    const subject = `$JS.API.CONSUMER.MSG.NEXT.SY_${part}.tool_${tool}`;
    let message: Msg;
    try {
      // A delivery keeps the subject of its record, so it needs a subscription of its own.
      const options = { timeout: PULL + 750, noMux: true, reply: createInbox() };
      message = await this.client.request(subject, request, options);
    } catch (error) {
      this.#consumers.delete(`${part} ${tool}`);
      log.debug(`a pull of ${tool} ended without an answer: ${nameOf(error)}`);
      await sleep(200);
      return undefined;
    }
    const status = message.headers?.code ?? 0;
    if (status !== 0) {
      if (status === 409) this.#consumers.delete(`${part} ${tool}`);
      if (status !== 404 && status !== 408) await sleep(200);
      return undefined;
    }
    const delivery = deliveryOf(message.subject, message.reply ?? "", message.string());
    if (delivery === undefined) {
      log.error(`a message of no thread was set aside: ${message.subject}`);
      message.respond("+TERM");
    }
    return delivery;
  }

  /** Acknowledges, or gives back for so many milliseconds. */
  settle(delivery: Delivery, after: number | undefined): void {
    const delay = after ? ` {"delay": ${Math.round(after * 1_000_000)}}` : "";
    this.tell(delivery, after === undefined ? "+ACK" : `-NAK${delay}`);
  }

  tell(delivery: Delivery, word: string): void {
    try {
      this.client.publish(delivery.reply, word);
    } catch (error) {
      log.debug(`a delivery was not settled; it comes back: ${nameOf(error)}`);
    }
  }

  // Records.

  /** Appends once; nothing when somebody else was first. What throws may or may not have landed. */
  async append(subject: string, nonce: string, payload: string, how: { expected?: number; dedup?: string }): Promise<number | undefined> {
    const head: Record<string, string> = how.dedup === undefined ? {} : { "Nats-Msg-Id": how.dedup };
    if (how.expected !== undefined) head["Nats-Expected-Last-Subject-Sequence"] = String(how.expected);
    let unanswered = false;
    for (let left = REPEATS; left > 0; left -= 1) {
      try {
        return Number((await this.ask(subject, payload, head))["seq"]);
      } catch (error) {
        if (error instanceof TooLarge) throw error;
        if (error instanceof Refused && WRONG_LAST.includes(error.code)) {
          if (!unanswered) return undefined;
          const last = await this.last(subject);
          if (last !== undefined) return last.nonce === nonce ? last.sequence : undefined;
        } else if (error instanceof Refused && error.status !== 503) throw error;
        // While a stream has no leader nobody knows whether a message was taken.
        unanswered = true;
      }
      await sleep(100);
    }
    throw new BusError("an append was not answered");
  }

  /** The newest record of a subject, as the leader has it. */
  async last(subject: string): Promise<Found | undefined> {
    return this.message(subject.split(".")[1] ?? "", { last_by_subj: subject });
  }

  /** Whether a call is open, was closed by a planner, or has an observation. */
  async answered(place: Place, after: number, toolCallId: string): Promise<"open" | "closed" | "observed"> {
    for await (const { body } of this.records(place, "obs", after)) {
      if (body["kind"] === "observation" && body["tool_call_id"] === toolCallId) return "observed";
    }
    for await (const { body } of this.records(place, "plan.fact", after)) {
      const closed = body["fact"] === "call_closed" ? body["observation"] : undefined;
      if (isObject(closed) && closed["tool_call_id"] === toolCallId) return "closed";
    }
    return "open";
  }

  /** Whether a planner has set a record aside. */
  async parked(place: Place, sequence: number): Promise<boolean> {
    for await (const { body } of this.records(place, "plan.fact", sequence)) {
      if (body["fact"] === "parked" && body["sequence"] === sequence) return true;
    }
    return false;
  }

  private async *records(place: Place, leaf: string, after: number): AsyncGenerator<Found> {
    const query = { next_by_subj: subjectOf(place, leaf) };
    let found = await this.message(String(place.partition), { seq: after + 1, ...query });
    while (found !== undefined) {
      yield found;
      found = await this.message(String(place.partition), { seq: found.sequence + 1, ...query });
    }
  }

  private async message(part: string, query: JsonObject): Promise<Found | undefined> {
    const found = await this.stored(`SY_${part}`, query);
    if (found === undefined) return undefined;
    const { nonce, body } = isObject(found.value) ? found.value : {};
    return { sequence: found.sequence, nonce: String(nonce), body: isObject(body) ? body : {} };
  }

  private async stored(stream: string, query: JsonObject): Promise<{ sequence: number; value: unknown } | undefined> {
    let answer: JsonObject;
    try {
      answer = await this.ask(`$JS.API.STREAM.MSG.GET.${stream}`, query);
    } catch (error) {
      if (error instanceof Refused && error.code === NO_MESSAGE) return undefined;
      throw error;
    }
    const message = isObject(answer["message"]) ? answer["message"] : {};
    const text = Buffer.from(String(message["data"] ?? ""), "base64").toString();
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      value = undefined;
    }
    return { sequence: Number(message["seq"]), value };
  }

  // What is beside the records.

  /** What operators hold back, as it was asked for no longer than `age` milliseconds ago. */
  async frozen(age: number): Promise<Freeze[]> {
    if (this.#frozen !== undefined && performance.now() - this.#frozen.at < age) return this.#frozen.list;
    const at = performance.now();
    const found = await this.stored("KV_SY_FREEZES", { last_by_subj: "$KV.SY_FREEZES.frozen" });
    if (found !== undefined && !Array.isArray(found.value)) throw new BusError("the list of freezes cannot be read");
    this.#frozen = { at, list: (found?.value ?? []) as Freeze[] };
    return this.#frozen.list;
  }

  /** Tells planners which tools there are; it fades after thirty seconds. */
  async offer(worker: string, tools: JsonObject[]): Promise<void> {
    await this.ask(`$KV.SY_TOOLS.${worker}`, { worker, tools });
  }

  async withdraw(worker: string): Promise<void> {
    await this.ask(`$KV.SY_TOOLS.${worker}`, "", { "KV-Operation": "DEL" });
  }

  /** Stores a payload outside its message; one that is there is left alone. */
  async keep(place: Place, text: string): Promise<JsonObject> {
    const data = Buffer.from(text);
    const id = sha256(data);
    const name = `${place.tenant}/${place.thread}/${id}`;
    try {
      const store = await new Objm(jetstream(this.client, { timeout: REQUEST })).open("SY_ARTIFACTS");
      const there = await store.info(name);
      if (there === null || there.deleted) await store.putBlob({ name }, data);
    } catch (error) {
      throw new BusError(`an artifact was not stored: ${nameOf(error)}`);
    }
    return { id, bytes: data.length };
  }

  /** Hears hints; one that is lost only makes things slower. */
  onCancel(cancel: (place: Place, toolCallId: string) => void): void {
    this.client.subscribe("syctl.*.*", {
      callback: (error, message) => {
        if (error) return;
        const [, tenant = "", thread = ""] = message.subject.split(".");
        try {
          const hint: unknown = message.json();
          const partition = Number(message.headers?.get("Sy-Partition"));
          const isCancel = isObject(hint) && hint["hint"] === "cancel_call";
          if (isCancel) cancel({ partition, tenant, thread }, String(hint["tool_call_id"]));
        } catch {
          log.debug("a hint that is none");
        }
      },
    });
  }
}
