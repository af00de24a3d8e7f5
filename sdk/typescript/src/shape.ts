/** What leaves the worker: readable text, within its budget, without secrets. */

/** Longer texts are not for a message, whatever a tool's budget is; nor for an artifact. */
export const MOST_BYTES = 48 * 1024;
const MOST_ARTIFACT = 64 * 1024 * 1024;
const CHARS_PER_TOKEN = 4;

const SECRETS = new RegExp(
  [
    String.raw`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`,
    String.raw`\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?`,
    String.raw`\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}`,
    String.raw`\bxox[a-z]-[A-Za-z0-9-]{10,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}|\bAIza[0-9A-Za-z_-]{30,}`,
    String.raw`(?<=://)[^\s/:@]*:[^\s/@]+(?=@)|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{16,}`,
  ].join("|"),
  "g",
);
const CONTROL = /\x1b\[[ -?]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/** A value that is never printed, logged or sent: only `reveal` gives it away. */
export class Secret {
  readonly #value: string;
  constructor(readonly name: string, value: string) {
    this.#value = value;
  }
  static fromEnv(name: string): Secret {
    const value = process.env[name];
    if (!value) throw new Error(`the environment variable ${name} is not set`);
    return new Secret(name, value);
  }
  reveal(): string {
    return this.#value;
  }
  toString(): string {
    return `Secret(${this.name})`;
  }
  toJSON(): string {
    return this.toString();
  }
}

/** Takes secrets out of texts: those that were declared, and what looks like one. */
export class Redactor {
  #known: Secret[] = [];
  add(secret: Secret): void {
    // The longest first, so that no secret that contains another leaves a rest.
    this.#known = [...this.#known, secret].sort((a, b) => b.reveal().length - a.reveal().length);
  }
  redact(text: string): string {
    const without = this.#known.reduce((left, secret) => left.replaceAll(secret.reveal(), `[${secret.name}]`), text);
    return without.replace(SECRETS, "[redacted]");
  }
}

/** A tool's result as text. */
export function asText(result: unknown): string {
  if (result === undefined || result === null) return "";
  if (result instanceof Uint8Array) return new TextDecoder().decode(result);
  return typeof result === "string" ? result : (JSON.stringify(result) ?? "");
}

/** At most so many bytes of UTF-8, never a part of a character: from the front, or from the end. */
export function within(text: string, most: number, end: "head" | "tail" = "head"): string {
  const data = Buffer.from(text);
  if (data.length <= most) return text;
  const isInner = (at: number): boolean => ((data[at] ?? 0) & 0xc0) === 0x80;
  let at = end === "head" ? most : data.length - most;
  while (isInner(at)) at += end === "head" ? -1 : 1;
  return (end === "head" ? data.subarray(0, at) : data.subarray(at)).toString();
}

/** What a model reads of a text, and the whole of it when that is more. */
export function shape(result: string, tokens: number): { content: string; full?: string } {
  // Through UTF-8, so that no half of a character is left.
  const text = Buffer.from(result.replace(CONTROL, "")).toString();
  const most = Math.min(tokens * CHARS_PER_TOKEN, MOST_BYTES);
  if (Buffer.byteLength(text) <= most) return { content: text };
  const part = Math.floor((most * 3) / 8);
  const [head, tail] = [within(text, part), within(text, part, "tail")];
  const out = text.length - head.length - tail.length;
  const content = `${head}\n[... ${out} of ${text.length} characters left out ...]\n${tail}`;
  const full = within(text, MOST_ARTIFACT);
  const cut = full.length < text.length ? `\n[The result was larger than ${MOST_ARTIFACT} bytes; the rest was dropped.]` : "";
  return { content: content + cut, full };
}
