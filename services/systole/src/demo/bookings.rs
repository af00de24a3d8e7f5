//! An MCP server over standard input and output with one tool, `pin`: it appends the order to a file,
//! takes its time, and says so. A drill kills its worker meanwhile and counts the lines.

use std::fs::File;
use std::io::{self, BufRead as _, Write as _};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::failure::{Exit, Failure};

/// Where orders are written down, in the folder of the manifest.
const FILE: &str = "effects.log";
/// As long as the drill's other tools take.
const TAKES: Duration = Duration::from_millis(400);

/// Answers until its input ends.
pub(super) fn serve() -> Result<Exit, Failure> {
    let failed = |error: io::Error| Failure::other("the MCP server", error);
    for line in io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line.map_err(failed)?) else { continue };
        // What has no id asks for nothing.
        let Some(id) = message.get("id") else { continue };
        let answer = match answer(&message).map_err(failed)? {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(why) => {
                let error = json!({ "code": -32602, "message": why });
                json!({ "jsonrpc": "2.0", "id": id, "error": error })
            }
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{answer}").and_then(|()| out.flush()).map_err(failed)?;
    }
    Ok(Exit::Done)
}

fn answer(message: &Value) -> io::Result<Result<Value, String>> {
    let params = message.get("params");
    let of = |key: &str| params.and_then(|params| params.get(key)).cloned().unwrap_or_default();
    Ok(match message.get("method").and_then(Value::as_str).unwrap_or_default() {
        "initialize" => Ok(json!({
            "protocolVersion": of("protocolVersion"),
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "bookings", "version": env!("CARGO_PKG_VERSION") },
        })),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({ "tools": [{
            "name": "pin",
            "description": "Books an order for good; it cannot be taken back.",
            "inputSchema": {
                "type": "object",
                "properties": { "order": { "type": "string", "description": "Which order." } },
                "required": ["order"],
            },
        }] })),
        "tools/call" => {
            let order = of("arguments").get("order").and_then(Value::as_str).map(str::to_owned);
            match order {
                Some(order) => Ok(pin(&order)?),
                None => Err("`order` is missing".to_owned()),
            }
        }
        other => Err(format!("there is no method {other}")),
    })
}

fn pin(order: &str) -> io::Result<Value> {
    let mut file = File::options().create(true).append(true).open(FILE)?;
    file.write_all(format!("{order}\n").as_bytes())?;
    sleep(TAKES);
    let text = format!("booked {order}");
    Ok(json!({ "content": [{ "type": "text", "text": text }] }))
}
