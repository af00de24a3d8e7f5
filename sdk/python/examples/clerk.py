"""The tools of the drill's clerk: `python clerk.py look book sign` serves those of them. What is booked is a line in
effects.log in the working folder, which the tool itself appends."""

import asyncio
import logging
import sys
from typing import Annotated

from systole import Worker, declare

logging.basicConfig(level=logging.INFO)
Order = Annotated[str, "Which order."]


def write(order: str) -> None:
    with open("effects.log", "a", encoding="utf-8") as log:
        log.write(f"{order}\n")


async def look(order: Order) -> str:
    """Looks whether an order can be booked at this moment."""
    await asyncio.sleep(0.05)
    return f"{order} is free"


async def book(order: Order) -> str:
    """Books an order for good; it cannot be taken back."""
    write(order)
    await asyncio.sleep(0.4)
    return f"booked {order}"


async def sign(order: Order) -> str:
    """Books an order that a person has to agree to; it cannot be taken back."""
    return await book(order)


TOOLS = {
    "look": declare(look, effect="read_only", timeout=2),
    "book": declare(book, effect="irreversible", timeout=2),
    "sign": declare(sign, effect="irreversible", timeout=2, approval="always"),
}

if __name__ == "__main__":
    worker = Worker()
    for name in sys.argv[1:] or TOOLS:
        worker.add(TOOLS[name])
    worker.run()
