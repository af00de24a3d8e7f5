/** Tools for Systole in TypeScript: declare functions, run a worker, over NATS and nothing else. */
export { BusError, InvalidTool, NothingBegan, Stopped, ToolError } from "./errors.js";
export { boolean, integer, list, number, oneOf, optional, string, type Arguments, type Schema } from "./schema.js";
export { settingsFromEnv, type Settings } from "./settings.js";
export { Secret } from "./shape.js";
export { tool, type Call, type Options, type Tool } from "./tool.js";
export type { Effect } from "./wire.js";
export { Worker } from "./worker.js";
