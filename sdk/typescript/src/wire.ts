/** Records and subjects, as proto/PROTOCOL.md has them. */
import { createHash, randomBytes } from "node:crypto";

import type { Json, JsonObject } from "./schema.js";

/** The newest form of a record that this library reads, and the form that it writes. */
export const READER = 3;
const WRITER = 1;

/** What repeating a tool does, the strictest last. */
export const EFFECTS = ["read_only", "idempotent", "checkable", "irreversible"] as const;
export type Effect = (typeof EFFECTS)[number];

/** A newer process wrote it: hand it back. */
export class TooNew extends Error {}
/** No version can read it: a planner sets it aside. */
export class Malformed extends Error {}

export type Envelope = { nonce: string; traceparent?: string; body: JsonObject };

export const sha256 = (data: string | Uint8Array): string => createHash("sha256").update(data).digest("hex");
export const newNonce = (): string => randomBytes(8).toString("hex");

/** JSON with sorted keys and no blanks. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(",")}}`;
}

export function encode(nonce: string, traceparent: string | undefined, body: JsonObject): string {
  return JSON.stringify({ v: WRITER, min_reader: WRITER, nonce, traceparent, body });
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** What is newer than this library is told apart before the body is looked at. */
export function decode(data: string): Envelope {
  let found: unknown;
  try {
    found = JSON.parse(data);
  } catch (error) {
    throw new Malformed(String(error));
  }
  if (!isObject(found) || typeof found["min_reader"] !== "number") throw new Malformed("no envelope");
  if (found["min_reader"] > READER) throw new TooNew(`the record needs reader version ${found["min_reader"]}`);
  if (typeof found["nonce"] !== "string" || !isObject(found["body"])) throw new Malformed("no nonce or no body");
  const { nonce, traceparent, body } = found;
  return typeof traceparent === "string" ? { nonce, traceparent, body } : { nonce, body };
}

/** Where a thread lives. */
export type Place = { partition: number; tenant: string; thread: string };
export const placeName = (place: Place): string => `${place.partition}/${place.tenant}/${place.thread}`;
export const subjectOf = (place: Place, leaf: string): string =>
  `sy.${place.partition}.${place.tenant}.${place.thread}.${leaf}`;

/** A record as a consumer hands it out. */
export type Delivery = { place: Place; sequence: number; count: number; storedAt: number; payload: string; reply: string };

/** What the two subjects of a message tell; nothing for one that is no thread's. */
export function deliveryOf(subject: string, reply: string, payload: string): Delivery | undefined {
  const at = subject.split(".");
  const parts = reply.split(".");
  const shift = parts.length >= 11 ? 6 : 4;
  const numbers = [at[1], parts[shift], parts[shift + 1]].map(Number);
  const [partition, count, sequence] = numbers;
  const nanos = parts[shift + 3];
  const [head, , tenant, thread] = at;
  if (head !== "sy" || !reply.startsWith("$JS.ACK.") || tenant === undefined || thread === undefined) return undefined;
  if (numbers.some(Number.isNaN) || nanos === undefined || !/^\d+$/.test(nanos)) return undefined;
  const storedAt = Number(BigInt(nanos) / 1_000_000n);
  return { place: { partition: partition!, tenant, thread }, sequence: sequence!, count: count!, storedAt, payload, reply };
}

/** A call to execute. Fields that this library does not know are passed over. */
export type ToolCall = {
  toolCallId: string;
  tool: string;
  arguments: JsonObject;
  argumentsHash: string;
  effect: Effect;
  fingerprint: string;
  maxAttempts: number;
  startBy: number;
  deadline: number;
  idempotencyKey: string;
};

export function toolCall(body: JsonObject): ToolCall {
  const text = (name: string): string => {
    const value = body[name];
    if (typeof value !== "string") throw new Malformed(`${name} is no text`);
    return value;
  };
  const whole = (value: Json | undefined, name: string): number => {
    if (typeof value !== "number") throw new Malformed(`${name} is no number`);
    return value;
  };
  const effect = EFFECTS.find((known) => known === body["effect"]);
  if (text("kind") !== "tool_call" || effect === undefined) throw new Malformed(`a record of kind ${text("kind")}`);
  const { arguments: given, retry } = body;
  if (!isObject(given) || !isObject(retry)) throw new Malformed("no arguments or no retry");
  return {
    toolCallId: text("tool_call_id"),
    tool: text("tool"),
    arguments: given,
    argumentsHash: text("arguments_hash"),
    effect,
    fingerprint: text("fingerprint"),
    maxAttempts: Math.max(1, whole(retry["max_attempts"], "max_attempts")),
    startBy: whole(body["start_by"], "start_by"),
    deadline: whole(body["deadline"], "deadline"),
    idempotencyKey: text("idempotency_key"),
  };
}
