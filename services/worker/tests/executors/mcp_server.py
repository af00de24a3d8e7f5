"""An MCP server over standard input and output that does what a test asks for."""
import json
import os
import subprocess
import sys
import time

grown = False
marks = os.environ.get("MARKS")


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def mark(text):
    with open(marks, "a") as file:
        file.write(text + "\n")


def tool(name, **more):
    return {"name": name, "description": f"The tool {name} of a test.", "inputSchema": {"type": "object"}, **more}


def tools():
    names = ["die", "hang", "grow", "refuse", "flood", "secret", "children"]
    all_tools = [tool(name) for name in names]
    all_tools.append(tool("read", annotations={"readOnlyHint": True}))
    if grown:
        all_tools.append(tool("extra"))
        all_tools[-2]["description"] = "It reads otherwise now."
    return all_tools


def call(number, name, token):
    global grown
    mark(f"called {name}")
    if name == "die":
        sys.stderr.write("about to die of a test\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "hang":
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1, "total": 2, "message": "half"}})
        return
    if name == "children":
        child = subprocess.Popen(["sleep", "1000"])
        mark(f"child {child.pid}")
        return
    if name == "grow":
        grown = True
        send({"method": "notifications/tools/list_changed"})
    if name == "refuse":
        send({"id": number, "error": {"code": -32602, "message": "no such thing"}})
        return
    text = "x" * 3_000_000 if name == "flood" else f"done {name}"
    if name == "secret":
        text = "it is " + os.environ["TOKEN"]
    send({"id": number, "result": {"content": [{"type": "text", "text": text}]}})


mark(f"started {os.getpid()}")
if os.environ.get("BROKEN") and os.path.exists(os.environ["BROKEN"]):
    sys.stderr.write("broken on purpose\n")
    sys.exit(1)
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        send({"id": message["id"], "result": {
            "protocolVersion": version, "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "test", "version": "1"}}})
    elif method == "tools/list":
        send({"id": message["id"], "result": {"tools": tools()}})
    elif method == "tools/call":
        params = message["params"]
        call(message["id"], params["name"], params.get("_meta", {}).get("progressToken"))
    elif method == "notifications/cancelled":
        mark("cancelled " + str(message["params"].get("reason")))
    elif method == "ping":
        send({"id": message["id"], "result": {}})
