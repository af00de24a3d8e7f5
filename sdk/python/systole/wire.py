"""Records and subjects, as proto/PROTOCOL.md has them."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass
from typing import Any

READER = 3
"""The newest form of a record that this library reads."""
WRITER = 1
"""The form of the records that it writes."""

EFFECTS = ("read_only", "idempotent", "checkable", "irreversible")
"""What repeating a tool does, the strictest last."""


class TooNew(Exception):
    """A newer process wrote it: hand it back."""


class Malformed(Exception):
    """No version can read it: a planner sets it aside."""


def canonical(value: Any) -> str:
    """JSON with sorted keys and no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def new_nonce() -> str:
    return secrets.token_hex(8)


def encode(nonce: str, traceparent: str | None, body: dict[str, Any]) -> bytes:
    envelope: dict[str, Any] = {"v": WRITER, "min_reader": WRITER, "nonce": nonce}
    if traceparent is not None:
        envelope["traceparent"] = traceparent
    envelope["body"] = body
    return json.dumps(envelope, separators=(",", ":"), ensure_ascii=False).encode()


def decode(data: bytes) -> dict[str, Any]:
    """The envelope. What is newer than this library is told apart before its body is looked at."""
    try:
        envelope = json.loads(data)
        if envelope["min_reader"] > READER:
            raise TooNew(f"the record needs reader version {envelope['min_reader']}")
        if not isinstance(envelope["nonce"], str) or not isinstance(envelope["body"]["kind"], str):
            raise Malformed("nonce or kind is not a string")
    except (ValueError, KeyError, TypeError) as error:
        raise Malformed(f"{type(error).__name__}: {error}") from error
    return dict(envelope)


@dataclass(frozen=True)
class Place:
    """Where a thread lives."""

    partition: int
    tenant: str
    thread: str

    def subject(self, leaf: str) -> str:
        return f"sy.{self.partition}.{self.tenant}.{self.thread}.{leaf}"

    def __str__(self) -> str:
        return f"{self.partition}/{self.tenant}/{self.thread}"


@dataclass(frozen=True)
class Delivery:
    """A record as a consumer hands it out."""

    place: Place
    sequence: int
    count: int
    stored_at: int
    payload: bytes
    reply: str

    @classmethod
    def of(cls, subject: str, reply: str, payload: bytes) -> Delivery | None:
        """What the two subjects of a message tell; `None` for one that is no thread's."""
        at, parts = subject.split("."), reply.split(".")
        shift = 6 if len(parts) >= 11 else 4
        try:
            place = Place(int(at[1]), at[2], at[3])
            count, sequence, nanos = int(parts[shift]), int(parts[shift + 1]), int(parts[shift + 3])
        except (IndexError, ValueError):
            return None
        if at[0] != "sy" or parts[:2] != ["$JS", "ACK"]:
            return None
        return cls(place, sequence, count, nanos // 1_000_000, payload, reply)


@dataclass(frozen=True)
class ToolCall:
    """A call to execute. Fields that this library does not know are passed over."""

    tool_call_id: str
    tool: str
    arguments: dict[str, Any]
    arguments_hash: str
    effect: str
    fingerprint: str
    max_attempts: int
    start_by: int
    deadline: int
    idempotency_key: str

    @classmethod
    def of(cls, body: dict[str, Any]) -> ToolCall:
        try:
            if body["kind"] != "tool_call" or body["effect"] not in EFFECTS:
                raise Malformed(f"a record of kind {body['kind']}")
            return cls(
                tool_call_id=str(body["tool_call_id"]),
                tool=str(body["tool"]),
                arguments=dict(body["arguments"]),
                arguments_hash=str(body["arguments_hash"]),
                effect=str(body["effect"]),
                fingerprint=str(body["fingerprint"]),
                max_attempts=max(1, int(body["retry"]["max_attempts"])),
                start_by=int(body["start_by"]),
                deadline=int(body["deadline"]),
                idempotency_key=str(body["idempotency_key"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise Malformed(f"{type(error).__name__}: {error}") from error
