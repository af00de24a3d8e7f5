"""Where the servers are, from the variables that every process of a deployment reads."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Settings:
    """Settings of a worker; `Settings.from_env()` reads `SYSTOLE_*`."""

    servers: list[str] = field(default_factory=lambda: ["nats://127.0.0.1:4222"])
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    credentials: str | None = None
    ca: str | None = None
    tls: bool = False
    partitions: int = 1
    ack_wait: float = 6.0
    """Of the consumers that this worker is the first to need."""
    slots: int = 16
    """Calls worked on at once."""
    drain: float = 20.0
    """How long work under way may take after SIGTERM."""
    wait: float = 30.0
    """How long to wait for the servers at start."""
    grace: float = 5.0
    """Between an attempt's limit and the moment at which it is certainly gone."""
    host: str = field(default_factory=socket.gethostname)

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Settings:
        env = os.environ if env is None else env
        found = cls()
        texts = {"user": "NATS_USER", "password": "NATS_PASSWORD", "token": "NATS_TOKEN"}
        texts |= {"credentials": "NATS_CREDENTIALS", "ca": "NATS_CA"}
        for name, variable in texts.items():
            setattr(found, name, env.get(f"SYSTOLE_{variable}") or None)
        numbers = {"partitions": "PARTITIONS", "slots": "SLOTS"}
        numbers |= {"ack_wait": "ACK_WAIT_S", "drain": "GRACE_S", "wait": "WAIT_S"}
        problems = []
        for name, variable in numbers.items():
            if (text := env.get(f"SYSTOLE_{variable}")) is None:
                continue
            kind = type(getattr(found, name))
            try:
                setattr(found, name, kind(text))
            except ValueError:
                problems.append(f"SYSTOLE_{variable}: `{text}` is no number")
        found.tls = env.get("SYSTOLE_NATS_TLS", "").lower() in ("1", "true", "yes")
        if servers := env.get("SYSTOLE_NATS"):
            found.servers = [server.strip() for server in servers.split(",") if server.strip()]
        if found.slots < 1 or found.partitions < 1 or found.ack_wait < 1:
            problems.append("slots, partitions and ack wait have to be at least 1")
        if problems:
            raise ValueError("; ".join(problems))
        return found

    def options(self) -> dict[str, Any]:
        """For the client library."""
        context = None
        if self.tls or self.ca or any(server.startswith("tls:") for server in self.servers):
            context = ssl.create_default_context(cafile=self.ca)
        options = {
            "user": self.user,
            "password": self.password,
            "token": self.token,
            "user_credentials": self.credentials,
            "tls": context,
        }
        return {name: value for name, value in options.items() if value is not None}
