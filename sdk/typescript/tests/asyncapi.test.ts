/** proto/asyncapi.yaml is AsyncAPI 3, and its examples keep the schemas that it names. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";

import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { parse } from "yaml";

type Message = { payload: { $ref?: string }; examples?: { payload: unknown }[] };

const proto = process.env["SYSTOLE_PROTO"] ?? join(import.meta.dirname, "../../../../proto");
const document: Record<string, any> = parse(readFileSync(join(proto, "asyncapi.yaml"), "utf8"));

test("it is AsyncAPI 3", () => {
  const spec = createRequire(import.meta.url)("@asyncapi/specs/schemas/3.0.0.json");
  const ajv = new Ajv({ strict: false, validateFormats: false, logger: false, meta: false, validateSchema: false });
  const validate = ajv.compile(spec);
  assert.ok(validate(document), JSON.stringify(validate.errors?.slice(0, 5)));
  assert.ok(!validate({ ...document, channels: 7 }), "a wrong document is told apart");
});

test("every reference leads somewhere, and every example keeps its schema", () => {
  const messages = Object.entries<Message>(document.components.messages);
  const refs = messages.flatMap(([, { payload }]) => (payload.$ref ? [payload.$ref] : []));
  assert.ok(refs.length >= 6);
  let examples = 0;
  for (const [name, { payload, examples: given = [] }] of messages) {
    if (payload.$ref === undefined) continue;
    const schema = JSON.parse(readFileSync(join(proto, payload.$ref), "utf8"));
    const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(schema);
    for (const example of given) {
      examples += 1;
      assert.ok(validate(example.payload), `${name}: ${JSON.stringify(validate.errors?.slice(0, 5))}`);
    }
    assert.ok(!validate({ of: "nothing" }), `${name}: its schema allows anything`);
  }
  assert.ok(examples >= 5);
});

test("every operation names a channel, every channel a message that is there", () => {
  for (const operation of Object.values<{ channel: { $ref: string } }>(document.operations)) {
    assert.ok(document.channels[operation.channel.$ref.replace("#/channels/", "")], operation.channel.$ref);
  }
  for (const channel of Object.values<{ messages: Record<string, { $ref: string }> }>(document.channels)) {
    for (const { $ref } of Object.values(channel.messages)) {
      assert.ok(document.components.messages[$ref.replace("#/components/messages/", "")], $ref);
    }
  }
});
