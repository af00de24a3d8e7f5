//! `systole bench-part`: one measurement in a process of its own; prints it as one JSON object.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use super::distributed::{bare, fleet, talking, waiting, worker};
use super::{early, floor, memory, overhead, throughput};
use crate::arguments::BenchPart;
use crate::commands::Context;
use crate::failure::{Exit, Failure};

/// Measures and prints.
pub(crate) async fn part(context: &Context, part: &BenchPart) -> Result<Exit, Failure> {
    match part {
        BenchPart::Throughput { url, span_ms, unsynced } => {
            let span = Duration::from_millis(*span_ms);
            print(&throughput::measure(context, url, !unsynced, span).await?)
        }
        BenchPart::Floor { url, span_ms } => {
            print(&floor::measure(context, url, Duration::from_millis(*span_ms)).await?)
        }
        BenchPart::Overhead { url, runs } => {
            print(&overhead::measure(context, url, many(*runs)).await?)
        }
        BenchPart::Memory { url, threads } => {
            print(&memory::measure(context, url, many(*threads)).await?)
        }
        BenchPart::Early { url, early_dispatch, pace } => {
            print(&early::measure(context, url, early_dispatch, *pace).await?)
        }
        BenchPart::Bare { .. }
        | BenchPart::BareWorker { .. }
        | BenchPart::Worker { .. }
        | BenchPart::Fleet { .. }
        | BenchPart::Waiting { .. }
        | BenchPart::Talking { .. }
        | BenchPart::Streams { .. } => Box::pin(over_servers(context, part)).await,
    }
}

async fn over_servers(context: &Context, part: &BenchPart) -> Result<Exit, Failure> {
    match part {
        BenchPart::Bare { nats, partitions, url, threads, span_ms } => {
            let span = Duration::from_millis(*span_ms);
            print(&bare::measure(nats, *partitions, url, *threads, span).await?)
        }
        BenchPart::BareWorker { nats, partitions } => {
            bare::worker(nats, *partitions).await.map(|()| Exit::Done)
        }
        BenchPart::Worker { servers, slots } => {
            Box::pin(worker::serve(context, servers, *slots)).await
        }
        BenchPart::Fleet { servers, threads, span_ms, calls } => {
            let span = Duration::from_millis(*span_ms);
            print(&fleet::measure(servers, *threads, span, *calls).await?)
        }
        BenchPart::Waiting { servers, url, threads, per_second } => {
            print(&waiting::measure(servers, url, *threads, *per_second).await?)
        }
        BenchPart::Talking { servers, url, threads, pace, span_ms, process } => {
            let amount = (*threads, *pace, Duration::from_millis(*span_ms));
            print(&talking::measure(servers, url, amount, process).await?)
        }
        BenchPart::Streams { url, model, threads } => {
            print(&waiting::streams(url, model, *threads).await?)
        }
        BenchPart::Throughput { .. }
        | BenchPart::Floor { .. }
        | BenchPart::Overhead { .. }
        | BenchPart::Memory { .. }
        | BenchPart::Early { .. } => Err(Failure::other("the bench", "a part without servers")),
    }
}

fn many(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn print(measured: &impl Serialize) -> Result<Exit, Failure> {
    let text = serde_json::to_string(measured).map_err(|error| Failure::other("JSON", error))?;
    writeln!(io::stdout(), "{text}").map_err(|error| Failure::other("standard output", error))?;
    Ok(Exit::Done)
}
