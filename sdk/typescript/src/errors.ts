/** The tool ran and failed; the text is for the model. `retryable`: another try may succeed. A tool
 * whose effect must not happen twice is not tried again for it: only `NothingBegan` proves enough. */
export class ToolError extends Error {
  readonly retryable: boolean;
  constructor(why: string, options: { retryable?: boolean } = {}) {
    super(why);
    this.retryable = options.retryable ?? false;
  }
}

/** Proof that no effect began: the request was not sent, the connection was refused. The only error
 * after which an irreversible tool may be tried again. */
export class NothingBegan extends ToolError {}

/** A cancelled tool says how far it had come. Without it, it counts as stopped after its effect had
 * begun. */
export class Stopped extends Error {
  readonly beforeEffect: boolean;
  constructor(options: { beforeEffect: boolean }) {
    super(options.beforeEffect ? "stopped before its effect" : "stopped");
    this.beforeEffect = options.beforeEffect;
  }
}

/** A declaration that breaks a rule; the text says which. */
export class InvalidTool extends Error {}

/** NATS refused something, or did not answer. */
export class BusError extends Error {}

/** A message is larger than the server takes. */
export class TooLarge extends BusError {}
