/** The tools of the worker conformance; proto/PROTOCOL.md says what each does. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { NothingBegan, ToolError, Worker, integer, optional, string, tool } from "../src/index.js";

const folder = process.env["SYSTOLE_CONFORMANCE_DIR"] ?? ".";
const count = (file: string, line: string): number => {
  const path = join(folder, file);
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").filter((found) => found === line).length : 0;
};
/** Appends a line and tells how often it is there. */
const write = (file: string, line: string): number => {
  appendFileSync(join(folder, file), `${line}\n`);
  return count(file, line);
};

const name = string("The line to write.");

new Worker()
  .add(
    tool("cf_echo", {
      description: "Says a text so many times, with blanks between.",
      parameters: { text: string("What to say."), times: optional(integer("How many times.", { minimum: 1, maximum: 5 }), 1) },
      effect: "read_only",
      timeoutMs: 2000,
      maxAttempts: 1,
      run: ({ text, times = 1 }) => Array<string>(times).fill(text).join(" "),
    }),
    tool("cf_slow", {
      description: "Takes its time.",
      parameters: { name, ms: integer("How long.") },
      effect: "read_only",
      timeoutMs: 12_000,
      maxAttempts: 2,
      backoffMs: 100,
      run: async ({ name, ms }, { signal }) => {
        write("slow.log", name);
        await sleep(ms, undefined, { signal });
        return "slept";
      },
    }),
    tool("cf_hang", {
      description: "Takes longer than it may.",
      parameters: { name },
      effect: "read_only",
      timeoutMs: 300,
      maxAttempts: 2,
      backoffMs: 50,
      run: async ({ name }, { signal }) => {
        write("hang.log", name);
        await sleep(10_000, undefined, { signal });
      },
    }),
    tool("cf_fail", {
      description: "Fails, and will fail again.",
      parameters: { name },
      effect: "read_only",
      timeoutMs: 2000,
      backoffMs: 50,
      run: ({ name }) => {
        write("fail.log", name);
        throw new ToolError("no such order");
      },
    }),
    tool("cf_flaky", {
      description: "Fails twice, and then does not.",
      parameters: { name },
      effect: "read_only",
      timeoutMs: 2000,
      backoffMs: 50,
      run: ({ name }) => {
        if (write("flaky.log", name) < 3) throw new ToolError("not yet", { retryable: true });
        return "third";
      },
    }),
    tool("cf_big", {
      description: "Says much.",
      parameters: { bytes: integer("How much.") },
      effect: "read_only",
      timeoutMs: 2000,
      maxAttempts: 1,
      run: ({ bytes }) => "0123456789".repeat(Math.ceil(bytes / 10)).slice(0, bytes),
    }),
    tool("cf_keyed", {
      description: "Tells its idempotency key, the second time it is asked.",
      parameters: {},
      effect: "idempotent",
      timeoutMs: 2000,
      backoffMs: 50,
      run: (_, { idempotencyKey }) => {
        if (write("keyed.log", idempotencyKey) < 2) throw new ToolError("not yet", { retryable: true });
        return idempotencyKey;
      },
    }),
    tool("cf_put", {
      description: "Puts a line where a check can find it.",
      parameters: { line: string("The line."), before_ms: optional(integer("How long before."), 0), after_ms: optional(integer("How long after."), 0) },
      effect: "checkable",
      timeoutMs: 2500,
      backoffMs: 50,
      run: async ({ line, before_ms = 0, after_ms = 0 }, { signal }) => {
        await sleep(before_ms, undefined, { signal });
        write("put.log", line);
        await sleep(after_ms, undefined, { signal });
        return `put ${line}`;
      },
      probe: ({ line }) => count("put.log", line) > 0,
    }),
    tool("cf_append", {
      description: "Appends a line for good.",
      parameters: { line: string("The line."), ms: optional(integer("How long after."), 0) },
      effect: "irreversible",
      timeoutMs: 2500,
      backoffMs: 50,
      run: async ({ line, ms = 0 }, { signal }) => {
        write("append.log", line);
        await sleep(ms, undefined, { signal });
        return `appended ${line}`;
      },
    }),
    tool("cf_refuse", {
      description: "Cannot begin.",
      schema: { type: "object", properties: {}, additionalProperties: false },
      effect: "irreversible",
      timeoutMs: 2000,
      maxAttempts: 1,
      run: () => {
        throw new NothingBegan("the other side refused the connection");
      },
    }),
    tool("cf_crash", {
      description: "Writes a line and breaks down.",
      parameters: { name },
      effect: "irreversible",
      timeoutMs: 2000,
      backoffMs: 50,
      run: ({ name }) => {
        write("crash.log", name);
        throw new Error("broken");
      },
    }),
  )
  .run()
  .catch((error: unknown) => {
    process.stderr.write(`${error}\n`);
    process.exit(1);
  });
