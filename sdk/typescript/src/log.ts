/** Lines for operators, on standard error: ids and codes, never arguments or results. */
type Level = "debug" | "info" | "warn" | "error";
const LEVELS: Level[] = ["debug", "info", "warn", "error"];
const least = LEVELS.indexOf((process.env["SYSTOLE_LOG"] as Level | undefined) ?? "info");

const line = (level: Level) => (text: string): void => {
  if (LEVELS.indexOf(level) >= least) process.stderr.write(`${level} ${text}\n`);
};

export const log = { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
