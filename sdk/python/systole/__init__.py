"""Tools for Systole in Python: declare functions, run a worker, over NATS and nothing else."""

from .errors import BusError, InvalidTool, NothingBegan, Stopped, ToolError
from .settings import Settings
from .shape import Secret
from .tool import Call, Tool, declare
from .worker import Worker

__all__ = [
    "BusError",
    "Call",
    "InvalidTool",
    "NothingBegan",
    "Secret",
    "Settings",
    "Stopped",
    "Tool",
    "ToolError",
    "Worker",
    "declare",
]
