/** The worker: its tools, its tasks, and how it stops. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { Bus } from "./bus.js";
import { Case, type Settled } from "./case.js";
import { BusError, InvalidTool } from "./errors.js";
import { log } from "./log.js";
import { settingsFromEnv, type Settings } from "./settings.js";
import { Redactor, Secret } from "./shape.js";
import type { Tool } from "./tool.js";
import { Malformed, TooNew, decode, placeName, toolCall, type Delivery } from "./wire.js";

const OFFER_EVERY = 10_000;
const MEASURE_EVERY = 30_000;
const UNREADABLE = 60_000;
const AGAIN = 1000;
const NO_SLOT = 200;
const RUNNING_HERE = 5000;
const BUSY = 20;

/** Serves tools. Add them, then `run`. */
export class Worker {
  readonly settings: Settings;
  /** This life of this process. */
  readonly instance = `ts-${randomBytes(8).toString("hex")}`;
  readonly redactor = new Redactor();
  /** Nonces of start records that may lie there and whose effect certainly never began. */
  readonly unused = new Set<string>();
  bus!: Bus;
  #tools = new Map<string, Tool>();
  #stop = new AbortController();
  #running = new Map<string, Case>();
  #held = new Set<Delivery>();
  #calls = new Set<Promise<void>>();

  constructor(settings: Settings = settingsFromEnv()) {
    this.settings = settings;
  }

  get draining(): AbortSignal {
    return this.#stop.signal;
  }

  add(...tools: Tool[]): this {
    for (const tool of tools) {
      if (this.#tools.has(tool.name)) throw new InvalidTool(`there are two tools of the name ${tool.name}`);
      this.#tools.set(tool.name, tool);
    }
    return this;
  }

  /** A secret from the environment, which no result and no log line gives away. */
  secret(name: string): Secret {
    const secret = Secret.fromEnv(name);
    this.redactor.add(secret);
    return secret;
  }

  /** Begins to stop, as SIGTERM does. */
  stop(): void {
    this.#stop.abort();
  }

  /** Works until SIGTERM or SIGINT, then ends what is under way and gives back the rest. */
  async run(): Promise<void> {
    if (this.#tools.size === 0) throw new InvalidTool("a worker without tools has nothing to do");
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      process.on(signal, () => (this.draining.aborted ? process.exit(130) : this.stop()));
    }
    const asked = new Promise<undefined>((resolve) => this.draining.addEventListener("abort", () => resolve(undefined)));
    const bus = await Promise.race([Bus.connect(this.settings, this.instance), asked]);
    if (bus === undefined) return process.exit(0);
    this.bus = bus;
    void bus.client.closed().then(() => {
      if (this.draining.aborted) return;
      log.error("NATS has closed the connection for good; this worker ends");
      process.exit(1);
    });
    bus.onCancel((place, id) => this.#running.get(`${placeName(place)}/${id}`)?.cancel.abort());
    const alive = setInterval(() => this.#held.forEach((delivery) => bus.tell(delivery, "+WPI")), bus.ackWaitMs / 3);
    const parts = Array.from({ length: this.settings.partitions }, (_, part) => part);
    void this.keepOffering();
    void this.keepMeasuring();
    const pulls = parts.flatMap((part) => [...this.#tools.values()].map((tool) => this.pull(part, tool)));
    log.info(`worker ${this.instance} serves ${[...this.#tools.keys()].join(", ")}`);
    await asked;
    await this.drain(pulls);
    clearInterval(alive);
    process.exit(0);
  }

  private async drain(pulls: Promise<void>[]): Promise<void> {
    log.info(`draining: ${this.#running.size} calls are under way`);
    await this.bus.withdraw(this.instance).catch((error: unknown) => log.debug(`the offer fades by itself: ${error}`));
    // An open pull may still bring a call, which is given back.
    await Promise.race([Promise.all([...pulls, ...this.#calls]), sleep(this.settings.drainMs)]);
    this.#held.forEach((delivery) => this.bus.settle(delivery, 0));
    await Promise.race([this.bus.client.drain(), sleep(2000)]).catch(() => undefined);
  }

  private async pull(part: number, tool: Tool): Promise<void> {
    while (!this.draining.aborted) {
      // Waiting for a slot before the pull leaves calls to workers that are free.
      if (this.#calls.size >= this.settings.slots) {
        await sleep(BUSY);
        continue;
      }
      try {
        const delivery = await this.bus.pull(part, tool.name);
        if (delivery === undefined) continue;
        if (this.draining.aborted) this.bus.settle(delivery, 0);
        else if (this.#calls.size >= this.settings.slots) this.bus.settle(delivery, NO_SLOT);
        else {
          const handled: Promise<void> = this.handle(tool, delivery).finally(() => this.#calls.delete(handled));
          this.#calls.add(handled);
        }
      } catch (error) {
        log.warn(`a pull failed: ${error}`);
        await sleep(500);
      }
    }
  }

  private async handle(tool: Tool, delivery: Delivery): Promise<void> {
    this.#held.add(delivery);
    const settled = await this.judge(tool, delivery).catch((error: unknown) => {
      log.warn(`a call was given back: ${error instanceof BusError ? error.message : (error as Error).stack}`);
      return AGAIN;
    });
    this.#held.delete(delivery);
    this.bus.settle(delivery, settled);
  }

  private async judge(tool: Tool, delivery: Delivery): Promise<Settled> {
    let found: Case;
    try {
      const { body, traceparent } = decode(delivery.payload);
      found = new Case(this, tool, delivery, toolCall(body), traceparent);
    } catch (error) {
      if (error instanceof TooNew) {
        log.warn(`a newer call was given back: ${error.message}`);
        return UNREADABLE;
      }
      if (!(error instanceof Malformed)) throw error;
      log.error(`an unreadable call at ${delivery.sequence}`);
      return (await this.bus.parked(delivery.place, delivery.sequence)) ? undefined : UNREADABLE;
    }
    const key = `${placeName(delivery.place)}/${found.call.toolCallId}`;
    if (this.#running.has(key)) return RUNNING_HERE;
    this.#running.set(key, found);
    try {
      return await found.work();
    } finally {
      this.#running.delete(key);
    }
  }

  private async keepOffering(): Promise<void> {
    const contracts = [...this.#tools.values()].map((tool) => tool.contract);
    while (!this.draining.aborted) {
      const pause = await this.bus.offer(this.instance, contracts).then(
        () => OFFER_EVERY,
        (error: unknown) => {
          log.warn(`tools are not on offer: ${error}`);
          return AGAIN;
        },
      );
      await sleep(pause, undefined, { signal: this.draining }).catch(() => undefined);
    }
  }

  private async keepMeasuring(): Promise<void> {
    while (!this.draining.aborted) {
      await sleep(MEASURE_EVERY, undefined, { signal: this.draining }).catch(() => undefined);
      await this.bus.measure().catch((error: unknown) => log.warn(`the server's time was not measured: ${error}`));
    }
  }
}
