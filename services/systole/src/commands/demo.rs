//! `systole demo`: an alert, a failing service, an agent that repairs it. Kill it at any moment; the
//! same command goes on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proto::ids::{InputKey, Sequence, ThreadId, ToolName};
use proto::time::Timestamp;

use super::Context;
use crate::agent_files::{LoadedAgent, load, with_choice};
use crate::arguments::{Demo, DemoName, Scenario};
use crate::demo::DIR;
use crate::demo::control::{Birth, client, get, start, stop_all};
use crate::demo::files::{AGENT, BuiltIn, alert};
use crate::demo::folder::Folder;
use crate::demo::service::when;
use crate::failure::{Exit, Failure};
use crate::follow::fold;
use crate::inputs::place;
use crate::interrupts::Interrupts;
use crate::launch::{Aim, Ended, Launch, message};
use crate::screen::View;
use crate::session::Ending;
use crate::shell;
use crate::staff::Hands;
use crate::wiring::{Store, choose_model};

/// The most requests until the service fails.
const TRAFFIC: u32 = 200;
/// Between two of them.
const PAUSE: Duration = Duration::from_millis(10);
/// The tool whose approval the demo gives beforehand.
const RESTART: &str = "restart_service";

/// Runs it.
pub(crate) async fn demo(context: &Context, demo: &Demo) -> Result<Exit, Failure> {
    let DemoName::Ops = demo.name;
    let mut interrupts =
        Interrupts::listen().map_err(|error| Failure::other("signals cannot be heard", error))?;
    let store = Store::open(&context.common)?;
    let folder = Folder::at(demo_folder(&context.common.store)?);
    let environment = context.environment.clone().with(DIR, folder.root());
    let mut loaded =
        load(&BuiltIn { folder: folder.root().to_owned() }, Path::new(AGENT), &environment)?;
    loaded.agent = with_choice(loaded.agent, &demo.model)?;
    let model = choose_model(&loaded, &demo.model)?;
    let approve: Vec<ToolName> = ToolName::new(RESTART).into_iter().collect();
    let mut view = context.view(demo.json);
    let aim = aim(demo, &store, &folder, &loaded, &approve, view.as_mut()).await?;
    let launch = Launch {
        common: &context.common,
        environment: &environment,
        loaded: &loaded,
        model: &model,
        approve: &approve,
        command: context.same_store(&shell::line(demo.again(&context.environment))),
        names_thread: false,
        json: demo.json,
        hands: Hands::Real,
    };
    let ended = launch.run(&store, aim, view, &mut interrupts).await;
    store.close().await?;
    let mut ended = ended?;
    match ended.ending {
        Ending::Finished(_) => tidy_up(context, demo, &folder, &mut ended).await?,
        Ending::Interrupted | Ending::PipeClosed | Ending::Unseen(_) => {
            leave(demo, &folder, &mut ended).await?;
        }
    }
    Ok(ended.exit())
}

/// Beside the store, as an absolute path: tools have working folders of their own.
fn demo_folder(store: &Path) -> Result<PathBuf, Failure> {
    let parent = store.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or_else(|| Path::new(".")).canonicalize();
    Ok(parent.map_err(|error| Failure::other("the store's folder", error))?.join("demo-ops"))
}

async fn aim(
    demo: &Demo,
    store: &Store,
    folder: &Folder,
    loaded: &LoadedAgent,
    approve: &[ToolName],
    view: &mut dyn View,
) -> Result<Aim, Failure> {
    let say = |view: &mut dyn View, text: &str| view.note(text).unwrap_or_default();
    let thread = match folder.unreported() {
        Some(thread) => {
            let known = fold(&store.ports().journal, &place(thread)).await?;
            if known.head.sequence != Sequence::NONE {
                say(view, "going on with the run that was cut off");
                let scenario = folder.scenario().unwrap_or(demo.scenario);
                if demo.scenario != scenario && demo.scenario != Scenario::Failing {
                    let kept = scenario.as_str();
                    say(view, &format!("its scenario stays: {kept}; --scenario is for a new run"));
                }
                revive(folder, scenario, view).await?;
                return Ok(Aim::GoOn { place: place(thread) });
            }
            thread
        }
        None => prepare(demo, store, folder, view).await?,
    };
    say(view, &format!("{RESTART} is approved beforehand (like --approve {RESTART})"));
    let text = folder.alert().unwrap_or_else(|| alert("1970-01-01T00:00:00Z"));
    let key = InputKey::new("demo").unwrap_or_else(|_| unreachable!("letters only"));
    let message = message(text, &loaded.agent.name, approve, None);
    Ok(Aim::Begin { place: place(thread), key, message })
}

/// A fresh service that begins to fail, and a fresh thread.
async fn prepare(
    demo: &Demo,
    store: &Store,
    folder: &Folder,
    view: &mut dyn View,
) -> Result<ThreadId, Failure> {
    let io = |error| Failure::other("the demo's folder", error);
    stop_all(folder).await.map_err(io)?;
    folder.reset().map_err(io)?;
    folder.set_scenario(demo.scenario).map_err(io)?;
    let birth = match demo.scenario {
        Scenario::Failing | Scenario::RestartFails => Birth::Leaking,
        Scenario::Healthy => Birth::Sound,
    };
    let pid =
        start(folder, 0, birth).await.map_err(|why| Failure::other("the demo's service", why))?;
    let url = folder.url().unwrap_or_default();
    view.note(&format!("service checkout runs at {url} (pid {pid})")).unwrap_or_default();
    let told = traffic(folder, demo.scenario).await?;
    view.note(&told).unwrap_or_default();
    let ports = store.ports();
    let now = ports.clock.now();
    let thread = ports.ids.thread_id(now);
    let began = Timestamp(now.0 - now.0.rem_euclid(1000));
    folder.prepared(&alert(&when(began)), thread).map_err(io)?;
    Ok(thread)
}

/// Starts the service again if an interrupt had ended it, and brings it to where it was.
async fn revive(folder: &Folder, scenario: Scenario, view: &mut dyn View) -> Result<(), Failure> {
    if !folder.take_up() {
        return Ok(());
    }
    let birth = match (scenario, folder.was_restarted()) {
        (Scenario::RestartFails, true) => return Ok(()),
        (Scenario::Healthy, _) | (Scenario::Failing, true) => Birth::Sound,
        (Scenario::Failing | Scenario::RestartFails, false) => Birth::Leaking,
    };
    let pid =
        start(folder, 0, birth).await.map_err(|why| Failure::other("the demo's service", why))?;
    if birth == Birth::Leaking {
        traffic(folder, scenario).await?;
    }
    view.note(&format!("the service runs again (pid {pid})")).unwrap_or_default();
    Ok(())
}

/// Customers come until the service fails, or for a while when it is well.
async fn traffic(folder: &Folder, scenario: Scenario) -> Result<String, Failure> {
    let client = client().map_err(|error| Failure::other("an HTTP client", error))?;
    let most = if scenario == Scenario::Healthy { 10 } else { TRAFFIC };
    for number in 1..=most {
        let answer = get(&client, folder, "/work").await;
        if answer.is_some_and(|answer| answer.status == 503) {
            return Ok(format!("traffic: request {number} is answered 503, the alert fires"));
        }
        tokio::time::sleep(PAUSE).await;
    }
    if scenario == Scenario::Healthy {
        return Ok(format!("traffic: {most} requests, all answered; an old alert fires"));
    }
    Err(Failure::other("the demo's service", "it did not begin to fail"))
}

/// The run is left for later; nothing is left running meanwhile unless somebody wants it.
async fn leave(demo: &Demo, folder: &Folder, ended: &mut Ended) -> Result<(), Failure> {
    let hint = if demo.keep {
        format!("the service still runs at {}", folder.url().unwrap_or_default())
    } else {
        let io = |error| Failure::other("the demo's service", error);
        stop_all(folder).await.map_err(io)?;
        folder.put_aside().map_err(io)?;
        "the service was ended; the same command starts it again".to_owned()
    };
    // Nobody is left to read it: that is no failure.
    ended.session.view().hint(&hint).unwrap_or_default();
    Ok(())
}

/// The end was seen: the service may go.
async fn tidy_up(
    context: &Context,
    demo: &Demo,
    folder: &Folder,
    ended: &mut Ended,
) -> Result<(), Failure> {
    let io = |error| Failure::other("the demo's folder", error);
    folder.reported().map_err(io)?;
    if !demo.keep {
        stop_all(folder).await.map_err(io)?;
    }
    let view = ended.session.view();
    let id = ended.place.thread;
    let mut hints = Vec::new();
    if folder.post_mortem().exists() {
        let path = folder.post_mortem();
        let here = std::env::current_dir().unwrap_or_default();
        let path = path.strip_prefix(here).unwrap_or(&path);
        hints.push(format!("post-mortem: {}", path.display()));
    }
    if demo.keep {
        hints.push(format!("the service still runs at {}", folder.url().unwrap_or_default()));
    }
    hints.push(format!("look back: {}", context.same_store(&format!("show {id}"))));
    for hint in hints {
        // Nobody is left to read it: that is no failure.
        view.hint(&hint).unwrap_or_default();
    }
    Ok(())
}
