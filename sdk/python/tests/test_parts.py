"""The parts that need no server; `cargo xtask worker-conformance` has the rest."""

import asyncio
import json
import threading
import time
import unittest
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional

from systole import Call, InvalidTool, Secret, Settings, declare
from systole.running import Runner
from systole.shape import Redactor, shape, within
from systole.wire import Delivery, Malformed, ToolCall, TooNew, canonical, decode


def greet(name: Annotated[str, "Whom."], call: Call, times: int = 1, how: Optional[Literal["loud"]] = None) -> str:
    """Greets."""
    return name * times


class Schemas(unittest.TestCase):
    def test_types_become_an_object_schema_that_is_closed(self) -> None:
        expected = {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Whom."},
                "times": {"type": "integer", "default": 1},
                "how": {"anyOf": [{"enum": ["loud"]}, {"type": "null"}]},
            },
            "required": ["name"],
            "additionalProperties": False,
        }
        self.assertEqual(declare(greet, effect="read_only").contract["parameters"], expected)

    def test_problems_name_the_field(self) -> None:
        tool = declare(greet, effect="read_only")
        self.assertIsNone(tool.problems({"name": "Ann", "times": 2}))
        self.assertIn("`times`", tool.problems({"name": "Ann", "times": "x"}) or "")
        self.assertIn("tmies", tool.problems({"name": "Ann", "tmies": 1}) or "")

    def test_a_tool_that_breaks_a_rule_is_told_apart(self) -> None:
        def bare(x: Any) -> None: ...

        def untyped(x):  # type: ignore[no-untyped-def]
            """Has no types."""

        wrong: list[dict[str, Any]] = [
            {"function": greet, "name": "no blanks"},
            {"function": greet, "effect": "checkable"},
            {"function": greet, "effect": "harmless"},
            {"function": bare},
            {"function": untyped},
        ]
        for options in wrong:
            with self.assertRaises(InvalidTool, msg=str(options)):
                declare(options.pop("function"), **options)

    def test_another_version_has_another_fingerprint(self) -> None:
        prints = [declare(greet, version=version).contract["fingerprint"] for version in ("1", "1", "2")]
        self.assertEqual(prints[0], prints[1])
        self.assertNotEqual(prints[0], prints[2])
        self.assertRegex(prints[0], "^[0-9a-f]{64}$")


class Shapes(unittest.TestCase):
    def test_no_cut_parts_a_character_and_the_whole_is_kept(self) -> None:
        for most in range(20):
            kept = within("aé€😀aé€😀", most)
            self.assertLessEqual(len(kept.encode()), most)
        long = "😀" * 5000
        content, full = shape(long, 10)
        self.assertEqual(full, long)
        self.assertLess(len(content), 200)
        self.assertNotIn("\ufffd", content)
        self.assertEqual(shape("short\x1b[31m", 10), ("short", None))
        self.assertEqual(shape("\ud800 half", 100), ("? half", None))

    def test_secrets_are_not_shown(self) -> None:
        secret = Secret("TOKEN", "hunter2-hunter2")
        redactor = Redactor()
        redactor.add(secret)
        self.assertEqual(redactor.redact("it is hunter2-hunter2"), "it is [TOKEN]")
        self.assertEqual(redactor.redact("nats://u:pw@host"), "nats://[redacted]@host")
        self.assertEqual(f"{secret} {secret!r}", "Secret(TOKEN) Secret(TOKEN)")
        settings = Settings.from_env({"SYSTOLE_NATS_PASSWORD": "hunter2", "SYSTOLE_NATS_TOKEN": "hunter2"})
        self.assertNotIn("hunter2", repr(settings))


class Attempts(unittest.IsolatedAsyncioTestCase):
    """Threads: two for one slot."""

    async def attempt(self, runner: Runner, function: Callable[..., Any], limit: float = 0.1) -> str:
        call = Call(tool_call_id="abc123xyz", idempotency_key="k", attempt=1, alive=lambda: None)
        tool = declare(function, effect="read_only", parameters={"type": "object"}, description="Waits.")
        cancel = asyncio.Event()
        ended = await runner.run(tool, function, call, {}, limit=time.monotonic() + limit, cancel=cancel)
        return ended.how

    async def test_one_that_stops_when_it_is_told_leaves_its_thread(self) -> None:
        runner = Runner(asyncio.get_running_loop(), 1, 0.4)

        def obedient(call: Call) -> None:
            if call.wait(5):
                raise InterruptedError

        self.assertEqual([await self.attempt(runner, obedient) for _ in range(4)], ["timed_out"] * 4)

    async def test_one_that_waits_for_a_thread_does_not_begin_after_its_end(self) -> None:
        runner = Runner(asyncio.get_running_loop(), 1, 0.4)
        begun: list[int] = []
        go_on = threading.Event()

        def stubborn() -> None:
            begun.append(1)
            go_on.wait(5)

        tries = [self.attempt(runner, stubborn, limit) for limit in (2, 2, 0.1)]
        ends = asyncio.gather(*tries)
        await asyncio.sleep(0.3)
        go_on.set()
        self.assertEqual(await ends, ["done", "done", "not_started"])
        self.assertEqual(len(begun), 2)


class Wire(unittest.TestCase):
    def test_the_subjects_of_a_delivery_tell_where_it_lies_in_both_forms(self) -> None:
        subject = "sy.1.acme.01HF0000000000000000000000.plan.tool_call.greet"
        short = "$JS.ACK.SY_1.tool_greet.2.41.7.1700000000123456789.0"
        long = "$JS.ACK.hub.hash.SY_1.tool_greet.2.41.7.1700000000123456789.0.x"
        for reply in (short, long):
            found = Delivery.of(subject, reply, b"")
            assert found is not None
            got = (found.place.partition, found.count, found.sequence, found.stored_at)
            self.assertEqual(got, (1, 2, 41, 1_700_000_000_123))
        self.assertIsNone(Delivery.of("other.subject", short, b""))

    def test_what_is_newer_is_told_apart_from_what_is_broken(self) -> None:
        with self.assertRaises(TooNew):
            decode(b'{"min_reader": 99, "of": "tomorrow"}')
        for broken in (b"", b"7", b"[]", b"{}", b'{"min_reader": 1}', b"\xff", b'{"min_reader": 1, "nonce": 7, "body": {}}'):
            with self.assertRaises(Malformed, msg=str(broken)):
                decode(broken)
        for body in ({"kind": "tick"}, {"kind": "tool_call", "effect": "read_only"}, {"kind": "tool_call", "effect": 7}):
            with self.assertRaises(Malformed, msg=json.dumps(body)):
                ToolCall.of(body)

    def test_canonical_json_sorts_keys_at_every_level(self) -> None:
        self.assertEqual(canonical({"b": [{"d": 1, "c": "é"}], "a": None}), '{"a":null,"b":[{"c":"é","d":1}]}')

    def test_all_wrong_settings_are_told_at_once(self) -> None:
        with self.assertRaisesRegex(ValueError, "SLOTS.*WAIT|WAIT.*SLOTS"):
            Settings.from_env({"SYSTOLE_SLOTS": "many", "SYSTOLE_WAIT_S": "long"})


if __name__ == "__main__":
    unittest.main()
