/** Where the servers are, from the variables that every process of a deployment reads. */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";

import { credsAuthenticator, type NodeConnectionOptions } from "@nats-io/transport-node";

export type Settings = {
  servers: string[];
  user?: string;
  password?: string;
  token?: string;
  credentials?: string;
  ca?: string;
  tls: boolean;
  partitions: number;
  /** Of the consumers that this worker is the first to need. */
  ackWaitMs: number;
  /** Calls worked on at once. */
  slots: number;
  /** How long work under way may take after SIGTERM. */
  drainMs: number;
  /** How long to wait for the servers at start. */
  waitMs: number;
  /** Between an attempt's limit and the moment at which it is certainly gone. */
  graceMs: number;
  host: string;
};

/** Reads `SYSTOLE_*`. */
export function settingsFromEnv(env: NodeJS.ProcessEnv = process.env): Settings {
  const text = (name: string): string | undefined => env[`SYSTOLE_${name}`] || undefined;
  const wrong: string[] = [];
  const number = (name: string, fallback: number): number => {
    const given = text(name);
    const value = Number(given ?? fallback);
    if (Number.isNaN(value) || value < 1) wrong.push(`SYSTOLE_${name}: \`${given}\` is no number from 1 on`);
    return value;
  };
  const optional = {
    user: text("NATS_USER"),
    password: text("NATS_PASSWORD"),
    token: text("NATS_TOKEN"),
    credentials: text("NATS_CREDENTIALS"),
    ca: text("NATS_CA"),
  };
  const settings: Settings = {
    servers: (text("NATS") ?? "nats://127.0.0.1:4222").split(",").map((server) => server.trim()),
    tls: ["1", "true", "yes"].includes((text("NATS_TLS") ?? "").toLowerCase()),
    partitions: number("PARTITIONS", 1),
    ackWaitMs: number("ACK_WAIT_S", 6) * 1000,
    slots: number("SLOTS", 16),
    drainMs: number("GRACE_S", 20) * 1000,
    waitMs: number("WAIT_S", 30) * 1000,
    graceMs: 5000,
    host: hostname(),
  };
  if (wrong.length > 0) throw new Error(wrong.join("; "));
  for (const [name, value] of Object.entries(optional)) if (value !== undefined) Object.assign(settings, { [name]: value });
  return settings;
}

/** For the client library. */
export function connectionOptions(settings: Settings, name: string): NodeConnectionOptions {
  const { servers, user, password, token, credentials, ca } = settings;
  const secure = settings.tls || ca !== undefined || servers.some((server) => server.startsWith("tls:"));
  return {
    servers,
    name,
    maxReconnectAttempts: -1,
    waitOnFirstConnect: true,
    reconnectTimeWait: 200,
    pingInterval: 2000,
    timeout: 2000,
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { pass: password }),
    ...(token === undefined ? {} : { token }),
    ...(credentials === undefined ? {} : { authenticator: credsAuthenticator(readFileSync(credentials)) }),
    ...(secure ? { tls: ca === undefined ? {} : { caFile: ca } } : {}),
  };
}
