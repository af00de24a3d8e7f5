/** The tools of the drill's clerk: `node clerk.js look book` serves those of them. What is booked is a line in effects.log
 * in the working folder, which the tool itself appends. */
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { Worker, string, tool } from "../src/index.js";

const parameters = { order: string("Which order.") };

const tools = {
  look: tool("look", {
    description: "Looks whether an order can be booked at this moment.",
    parameters,
    effect: "read_only",
    timeoutMs: 2000,
    run: async ({ order }) => {
      await sleep(50);
      return `${order} is free`;
    },
  }),
  book: tool("book", {
    description: "Books an order for good; it cannot be taken back.",
    parameters,
    effect: "irreversible",
    timeoutMs: 2000,
    run: async ({ order }) => {
      appendFileSync("effects.log", `${order}\n`);
      await sleep(400);
      return `booked ${order}`;
    },
  }),
};

const names = process.argv.slice(2);
const worker = new Worker();
for (const [name, declared] of Object.entries(tools)) if (names.length === 0 || names.includes(name)) worker.add(declared);
worker.run().catch((error: unknown) => {
  process.stderr.write(`${error}\n`);
  process.exit(1);
});
