"""How a tool says that it did not go well."""

from __future__ import annotations


class ToolError(Exception):
    """The tool ran and failed; the text is for the model.

    `retryable` says that another try may succeed. A tool whose effect must not happen twice is not
    tried again for it: only `NothingBegan` proves that nothing happened.
    """

    def __init__(self, why: str, *, retryable: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.retryable = retryable


class NothingBegan(ToolError):
    """Proof that no effect began: the request was not sent, the connection was refused.

    The only error after which an irreversible tool may be tried again.
    """


class Stopped(Exception):
    """A cancelled tool says how far it had come. Without it, it counts as stopped after its effect
    had begun."""

    def __init__(self, *, before_effect: bool) -> None:
        super().__init__("stopped before its effect" if before_effect else "stopped")
        self.before_effect = before_effect


class InvalidTool(ValueError):
    """A declaration that breaks a rule; the text says which and how to mend it."""


class BusError(Exception):
    """NATS refused something, or did not answer."""


class TooLarge(BusError):
    """A message is larger than the server takes."""
