/** A tool: what it promises, and the function that carries it out. */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";

import { InvalidTool } from "./errors.js";
import { objectOf, type Arguments, type JsonObject, type Schema } from "./schema.js";
import { EFFECTS, canonical, sha256, type Effect } from "./wire.js";

/** What a running tool may know of its call, and how it hears of a cancel. */
export type Call = {
  toolCallId: string;
  /** The same for every attempt of the call: pass it on to what is called. */
  idempotencyKey: string;
  attempt: number;
  /** Fires when the tool is to stop: it was cancelled, or its time is over. */
  signal: AbortSignal;
  /** Tells the bus at once that the call is being worked on; it is told regularly anyway. */
  progress(): void;
};

type Run<A> = (args: A, call: Call) => unknown;

/** How a tool is declared. Without `effect` nothing is assumed to be safe to repeat. */
export type Options = {
  description: string;
  effect?: Effect;
  timeoutMs?: number;
  maxAttempts?: number;
  backoffMs?: number;
  approval?: "never" | "always" | "when_tainted";
  permissions?: string[];
  resultTokens?: number;
  /** Goes into the fingerprint beside the function's source: change it when what it calls has changed. */
  version?: string;
};

/** A declared tool. */
export type Tool = {
  name: string;
  effect: Effect;
  contract: JsonObject & { fingerprint: string };
  timeoutMs: number;
  maxAttempts: number;
  backoffMs: number;
  resultTokens: number;
  run: Run<JsonObject>;
  probe?: Run<JsonObject>;
  validate: ValidateFunction;
};

type Declared<A> = Options & { run: Run<A>; probe?: Run<A> };

/** Makes a tool: parameters are properties with types, or a JSON Schema of an object. */
export function tool<P extends Record<string, Schema<unknown>>>(
  name: string,
  options: Declared<Arguments<P>> & { parameters: P },
): Tool;
export function tool(name: string, options: Declared<JsonObject> & { schema: JsonObject }): Tool;
export function tool(
  name: string,
  options: Options & { run: unknown; probe?: unknown; parameters?: Record<string, Schema<unknown>>; schema?: JsonObject },
): Tool {
  const { description, effect = "irreversible", timeoutMs = 3000, maxAttempts = 3, backoffMs = 500 } = options;
  const { approval = "never", permissions = [], resultTokens = 300, version = "" } = options;
  const run = options.run as Run<JsonObject>;
  const probe = options.probe as Run<JsonObject> | undefined;
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) throw new InvalidTool(`\`${name}\` is no tool name: 1 to 64 of A-Z, a-z, 0-9, - and _`);
  if (!description) throw new InvalidTool(`tool ${name} has no description: the model chooses by it`);
  if (!EFFECTS.includes(effect)) throw new InvalidTool(`tool ${name}: effect \`${effect}\` is none of ${EFFECTS.join(", ")}`);
  if ((effect === "checkable") !== (probe !== undefined)) {
    throw new InvalidTool(`tool ${name}: a checkable tool needs a \`probe\`, and no other has one`);
  }
  const parameters = options.schema ?? objectOf(options.parameters ?? {});
  const validate = new Ajv2020({ allErrors: true, strict: false, validateFormats: false }).compile(parameters);
  const retry = { max_attempts: Math.max(1, maxAttempts), backoff_ms: backoffMs };
  const promise = { name, description, parameters, effect, timeout_ms: timeoutMs, retry, approval, permissions, result_tokens: resultTokens };
  const implementation = [version, String(run), probe ? String(probe) : ""];
  const contract = { ...promise, fingerprint: sha256(canonical({ contract: promise, implementation })) };
  const made = { name, effect, contract, timeoutMs, maxAttempts: retry.max_attempts, backoffMs, resultTokens, run, validate };
  return probe ? { ...made, probe } : made;
}

/** What is wrong with arguments: field, rule, and what is expected. */
export function problems(tool: Tool, args: JsonObject): string | undefined {
  if (tool.validate(args)) return undefined;
  const lines = (tool.validate.errors ?? []).slice(0, 10).map((error) => {
    const extra = (error.params as { additionalProperty?: string }).additionalProperty;
    const field = error.instancePath.slice(1).replaceAll("/", ".") || "arguments";
    const allowed = (error.params as { allowedValues?: unknown[] }).allowedValues;
    const more = extra ? `: \`${extra}\`` : allowed ? `: ${allowed.join(", ")}` : "";
    return `- \`${field}\`: ${error.message ?? error.keyword}${more}`.slice(0, 300);
  });
  return lines.join("\n");
}
