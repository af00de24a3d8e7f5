"""A small stock: what is there may be looked up any number of times, what is taken is gone."""

import logging
from typing import Annotated

from systole import ToolError, Worker

logging.basicConfig(level=logging.INFO)
worker = Worker()
stock = {"bolt": 120, "nut": 80}

Part = Annotated[str, "The part, such as bolt."]


@worker.tool(effect="read_only")
def count_parts(part: Part) -> dict[str, int]:
    """Tells how many of a part are in stock. Returns JSON with the part and its number."""
    if part not in stock:
        raise ToolError(f"there is no part `{part}`; there are {', '.join(stock)}")
    return {part: stock[part]}


@worker.tool(effect="irreversible", timeout=5)
def take_parts(part: Part, number: Annotated[int, {"minimum": 1}, "How many."]) -> str:
    """Takes parts out of the stock for good. Returns how many are left."""
    if stock.get(part, 0) < number:
        raise ToolError(f"only {stock.get(part, 0)} of `{part}` are there")
    stock[part] -= number
    return f"{stock[part]} left"


if __name__ == "__main__":
    worker.run()
