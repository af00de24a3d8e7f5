import assert from "node:assert/strict";
import { test } from "node:test";

import { InvalidTool, Secret, integer, optional, string, tool } from "../src/index.js";
import { settingsFromEnv } from "../src/settings.js";
import { Redactor, shape, within } from "../src/shape.js";
import { problems } from "../src/tool.js";
import { Malformed, TooNew, canonical, decode, deliveryOf } from "../src/wire.js";

const greet = tool("greet", {
  description: "Greets.",
  parameters: { name: string("Whom."), times: optional(integer(), 1) },
  effect: "read_only",
  run: ({ name, times = 1 }) => name.repeat(times),
});

test("properties become an object schema that is closed", () => {
  assert.deepEqual(greet.contract["parameters"], {
    type: "object",
    properties: { name: { type: "string", description: "Whom." }, times: { type: "integer", default: 1 } },
    required: ["name"],
    additionalProperties: false,
  });
});

test("problems name the field", () => {
  assert.equal(problems(greet, { name: "Ann" }), undefined);
  assert.match(problems(greet, { name: 7 }) ?? "", /`name`: must be string/);
  assert.match(problems(greet, { name: "Ann", tmies: 2 }) ?? "", /tmies/);
});

test("another implementation has another fingerprint", () => {
  const of = (version: string): string =>
    tool("t", { description: "d", parameters: {}, version, run: () => 1 }).contract.fingerprint;
  assert.match(of("1"), /^[0-9a-f]{64}$/);
  assert.equal(of("1"), of("1"));
  assert.notEqual(of("1"), of("2"));
});

test("a tool that breaks a rule is told apart", () => {
  const options = { description: "d", parameters: {}, run: () => 1 };
  assert.throws(() => tool("no blanks", options), InvalidTool);
  assert.throws(() => tool("t", { ...options, description: "" }), InvalidTool);
  assert.throws(() => tool("t", { ...options, effect: "checkable" }), InvalidTool);
});

test("no cut parts a character, and the whole is kept", () => {
  for (let most = 0; most < 20; most += 1) {
    for (const end of ["head", "tail"] as const) {
      const kept = within("aé€😀aé€😀", most, end);
      assert.ok(Buffer.byteLength(kept) <= most && !kept.includes("\ufffd"), `${most} ${end} ${kept}`);
    }
  }
  const long = "😀".repeat(5000);
  const { content, full } = shape(long, 10);
  assert.ok(content.length < 200 && !content.includes("\ufffd"));
  assert.equal(full, long);
  assert.deepEqual(shape("short\u001b[31m", 10), { content: "short" });
});

test("secrets are not shown", () => {
  const secret = new Secret("TOKEN", "hunter2-hunter2");
  const redactor = new Redactor();
  redactor.add(secret);
  assert.equal(redactor.redact("it is hunter2-hunter2"), "it is [TOKEN]");
  assert.equal(redactor.redact("nats://u:pw@host Bearer abcdefghijklmnopqrst"), "nats://[redacted]@host Bearer [redacted]");
  assert.equal(`${secret} ${JSON.stringify({ secret })}`, 'Secret(TOKEN) {"secret":"Secret(TOKEN)"}');
});

test("a delivery's subjects tell where it lies, in both forms", () => {
  const subject = "sy.1.acme.01HF0000000000000000000000.plan.tool_call.greet";
  for (const prefix of ["$JS.ACK.", "$JS.ACK.hub.hash."]) {
    const suffix = prefix.length > 8 ? ".x" : "";
    const found = deliveryOf(subject, `${prefix}SY_1.tool_greet.2.41.7.1700000000123456789.0${suffix}`, "{}");
    assert.deepEqual([found?.place.partition, found?.count, found?.sequence, found?.storedAt], [1, 2, 41, 1_700_000_000_123]);
  }
  assert.equal(deliveryOf("other.subject", "$JS.ACK.a.b.1.2.3.4.5", ""), undefined);
});

test("what is newer is told apart from what is broken", () => {
  assert.throws(() => decode('{"min_reader": 99, "of": "tomorrow"}'), TooNew);
  for (const broken of ["", "7", "[]", "{}", '{"min_reader": 1}', '{"min_reader": 1, "nonce": 7, "body": {}}']) {
    assert.throws(() => decode(broken), Malformed, broken);
  }
});

test("canonical JSON sorts keys at every level", () => {
  assert.equal(canonical({ b: [{ d: 1, c: "é" }], a: null }), '{"a":null,"b":[{"c":"é","d":1}]}');
});

test("all wrong settings are told at once", () => {
  assert.throws(() => settingsFromEnv({ SYSTOLE_SLOTS: "many", SYSTOLE_PARTITIONS: "0" }), /SLOTS.*PARTITIONS|PARTITIONS.*SLOTS/s);
  assert.deepEqual(settingsFromEnv({ SYSTOLE_NATS: "nats://a, nats://b" }).servers, ["nats://a", "nats://b"]);
});
