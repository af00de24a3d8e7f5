//! From the command line to an exit code.

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::json;
use tokio::runtime::Runtime;

use crate::arguments::{
    Agents, Command, FileCommand, New, NodeCommand, ThreadCommand, Tools, parse,
};
use crate::bench::{command, model, part};
use crate::commands::{
    Context, agents, approve, cancel, clients, demo, dev, freeze, gateway, import, manual, memory,
    new, planner, rehearse, run, show, threads, tools, worker,
};
use crate::demo::{service, tool};
use crate::doctor::command as doctor;
use crate::drill::command as drill;
use crate::failure::{Exit, Failure};
use crate::settings::Environment;
use crate::{telemetry, wiring};

/// Parses, runs, and says what went wrong.
pub(crate) fn main() -> ExitCode {
    wiring::install_tls();
    let environment = Environment::of_process();
    let arguments = match parse(std::env::args_os(), &environment) {
        Ok(arguments) => arguments,
        Err((error, from)) => return complain(&error, from.as_deref()),
    };
    let usual = if is_server(&arguments.command) { "info" } else { "warn" };
    let colours = environment.wants_colours(arguments.common.color);
    telemetry::start(&arguments.common, usual, colours);
    let program = std::env::args_os().next().unwrap_or_else(|| "systole".into());
    let context = Context { common: arguments.common, environment, program };
    let json = wants_json(&arguments.command);
    let done = runtime().and_then(|runtime| {
        let done = runtime.block_on(carry_out(&context, arguments.command));
        // Whatever still runs, such as a read of standard input, ends with the process.
        runtime.shutdown_background();
        done
    });
    let exit = done.unwrap_or_else(|failure| {
        report(&failure, json);
        failure.exit
    });
    ExitCode::from(exit.code())
}

/// Help and versions go to standard output, complaints to standard error.
fn complain(error: &clap::Error, from: Option<&str>) -> ExitCode {
    let printed = error.print();
    if let Some(from) = from {
        io::stderr().write_all(format!("\n{from}\n").as_bytes()).unwrap_or_default();
    }
    let is_closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    match printed {
        Err(error) if !is_closed(&error) => {
            let failure = Failure::other("standard output", error);
            report(&failure, false);
            ExitCode::from(failure.exit.code())
        }
        Ok(()) | Err(_) => ExitCode::from(if error.use_stderr() {
            Exit::BadInput.code()
        } else {
            Exit::Done.code()
        }),
    }
}

fn runtime() -> Result<Runtime, Failure> {
    let built = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    built.map_err(|error| Failure::other("the runtime", error))
}

async fn carry_out(context: &Context, command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Run(run) => run::run(context, &run).await,
        Command::Demo(demo) => demo::demo(context, &demo).await,
        Command::Dev(dev) => dev::dev(context, &dev).await,
        Command::Thread(command) => carry_out_on_thread(context, *command).await,
        Command::Node(node) => carry_out_node(context, *node).await,
        Command::Rehearse(asked) => rehearse::rehearse(context, &asked).await,
        Command::File(command) => carry_out_on_files(context, command),
        Command::Tools(Tools::Check { files, json }) => {
            tools::check(context, &files, Vec::new(), json)
        }
        Command::Tools(Tools::List { files, json }) => tools::list(context, &files, json),
        Command::Memory(asked) => Box::pin(memory::memory(context, &asked)).await,
        Command::Tools(Tools::Import { from }) => import::import(context, &from).await,
        Command::Bench(bench) => command::bench(context, &bench).await,
        Command::BenchModel(asked) => model::serve(&asked).await.map(|()| Exit::Done),
        Command::BenchPart(asked) => part::part(context, &asked).await,
        Command::DemoService(asked) => service::serve(&asked).await.map(|()| Exit::Done),
        Command::DemoTool(asked) => tool::run(&asked, &context.environment).await,
    }
}

async fn carry_out_on_thread(context: &Context, command: ThreadCommand) -> Result<Exit, Failure> {
    match command {
        ThreadCommand::Threads(asked) => threads::threads(context, &asked).await,
        ThreadCommand::Show(show) => show::show(context, &show).await,
        ThreadCommand::Cancel(cancel) => cancel::cancel(context, &cancel).await,
        ThreadCommand::Approve(approve) => approve::approve(context, &approve).await,
        ThreadCommand::Freeze(asked) => freeze::freeze(context, &asked).await,
        ThreadCommand::Thaw(asked) => freeze::thaw(context, &asked).await,
    }
}

fn carry_out_on_files(context: &Context, command: FileCommand) -> Result<Exit, Failure> {
    match command {
        FileCommand::Agents(Agents::Check { agents, json }) => {
            agents::check(context, &agents, json)
        }
        FileCommand::Agents(Agents::List { agents, json }) => agents::list(context, &agents, json),
        FileCommand::New(New::Agent { name, dir }) => new::agent(context, &name, &dir),
        FileCommand::Completions { shell } => manual::completions(shell),
        FileCommand::Man { dir } => manual::man(&dir),
    }
}

async fn carry_out_node(context: &Context, command: NodeCommand) -> Result<Exit, Failure> {
    match command {
        NodeCommand::Planner(flags) => Box::pin(planner::planner(context, &flags)).await,
        NodeCommand::Worker(flags) => Box::pin(worker::worker(context, &flags)).await,
        NodeCommand::Gateway(flags) => Box::pin(gateway::gateway(context, &flags)).await,
        NodeCommand::Send(asked) => clients::send(context, &asked).await,
        NodeCommand::Tail(asked) => clients::tail(context, &asked).await,
        NodeCommand::Doctor(asked) => Box::pin(doctor::doctor(context, &asked)).await,
        NodeCommand::Drill(asked) => Box::pin(drill::drill(context, &asked)).await,
    }
}

/// Whether the command is a process that operators watch.
fn is_server(command: &Command) -> bool {
    matches!(command, Command::Node(node) if node.is_server())
}

fn wants_json(command: &Command) -> bool {
    match command {
        Command::Run(run) => run.json,
        Command::Demo(demo) => demo.json,
        Command::Dev(dev) => dev.json,
        Command::Thread(command) => command.wants_json(),
        Command::Rehearse(asked) => asked.json,
        Command::File(command) => command.wants_json(),
        Command::Tools(Tools::Check { json, .. } | Tools::List { json, .. }) => *json,
        Command::Node(node) => node.wants_json(),
        Command::Memory(asked) => asked.wants_json(),
        Command::Bench(bench) => bench.json,
        Command::Tools(Tools::Import { .. })
        | Command::DemoService(_)
        | Command::DemoTool(_)
        | Command::BenchModel(_)
        | Command::BenchPart(_) => false,
    }
}

/// For people on standard error; for programs that read events also as the last line.
fn report(failure: &Failure, json: bool) {
    let text = format!("systole: {failure}\n");
    // Without anybody to tell, the exit code has to do.
    io::stderr().write_all(text.as_bytes()).unwrap_or_default();
    if json {
        let line = json!({"type": "error", "code": failure.code, "message": failure.to_string()});
        writeln!(io::stdout(), "{line}").unwrap_or_default();
    }
}
