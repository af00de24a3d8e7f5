"""The tools of the worker conformance; proto/PROTOCOL.md says what each does."""

import asyncio
import logging
import os
import time
from pathlib import Path

from systole import Call, NothingBegan, ToolError, Worker

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
FOLDER = Path(os.environ["SYSTOLE_CONFORMANCE_DIR"])
worker = Worker()


def write(file: str, line: str) -> int:
    """Appends a line and tells how often it is there."""
    path = FOLDER / file
    with path.open("a") as log:
        log.write(f"{line}\n")
    return path.read_text().splitlines().count(line)


@worker.tool(name="cf_echo", effect="read_only", timeout=2, max_attempts=1)
def echo(text: str, times: int = 1) -> str:
    """Says a text so many times, with blanks between."""
    return " ".join([text] * times)


@worker.tool(name="cf_slow", effect="read_only", timeout=12, max_attempts=2, backoff=0.1)
def slow(name: str, ms: int, call: Call) -> str:
    """Takes its time."""
    write("slow.log", name)
    if call.wait(ms / 1000):
        raise InterruptedError("told to stop")
    return "slept"


@worker.tool(name="cf_hang", effect="read_only", timeout=0.3, max_attempts=2, backoff=0.05)
async def hang(name: str) -> str:
    """Takes longer than it may."""
    write("hang.log", name)
    await asyncio.sleep(10)
    return "never"


@worker.tool(name="cf_fail", effect="read_only", timeout=2, max_attempts=3, backoff=0.05)
def fail(name: str) -> str:
    """Fails, and will fail again."""
    write("fail.log", name)
    raise ToolError("no such order")


@worker.tool(name="cf_flaky", effect="read_only", timeout=2, max_attempts=3, backoff=0.05)
def flaky(name: str) -> str:
    """Fails twice, and then does not."""
    if write("flaky.log", name) < 3:
        raise ToolError("not yet", retryable=True)
    return "third"


@worker.tool(name="cf_big", effect="read_only", timeout=2, max_attempts=1)
def big(bytes: int) -> str:
    """Says much."""
    return ("0123456789" * (bytes // 10 + 1))[:bytes]


@worker.tool(name="cf_keyed", effect="idempotent", timeout=2, max_attempts=3, backoff=0.05)
def keyed(call: Call) -> str:
    """Tells its idempotency key, the second time it is asked."""
    if write("keyed.log", call.idempotency_key) < 2:
        raise ToolError("not yet", retryable=True)
    return call.idempotency_key


def put_there(line: str, before_ms: int = 0, after_ms: int = 0) -> bool:
    path = FOLDER / "put.log"
    return path.exists() and line in path.read_text().splitlines()


@worker.tool(name="cf_put", effect="checkable", timeout=2.5, max_attempts=3, backoff=0.05, probe=put_there)
def put(line: str, before_ms: int = 0, after_ms: int = 0) -> str:
    """Puts a line where a check can find it."""
    time.sleep(before_ms / 1000)
    write("put.log", line)
    time.sleep(after_ms / 1000)
    return f"put {line}"


@worker.tool(name="cf_append", effect="irreversible", timeout=2.5, max_attempts=3, backoff=0.05)
async def append(line: str, ms: int = 0) -> str:
    """Appends a line for good."""
    write("append.log", line)
    await asyncio.sleep(ms / 1000)
    return f"appended {line}"


@worker.tool(name="cf_refuse", effect="irreversible", timeout=2, max_attempts=1)
def refuse() -> str:
    """Cannot begin."""
    raise NothingBegan("the other side refused the connection")


@worker.tool(name="cf_crash", effect="irreversible", timeout=2, max_attempts=3, backoff=0.05)
def crash(name: str) -> str:
    """Writes a line and breaks down."""
    write("crash.log", name)
    raise RuntimeError("broken")


if __name__ == "__main__":
    worker.run()
