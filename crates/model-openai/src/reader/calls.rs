//! The calls of one reply: which piece belongs to which call, and when a call can go out.

use std::borrow::Cow;
use std::collections::BTreeMap;

use proto::model::{BrokenCall, ModelEvent, ReadyCall};
use serde_json::{Map, Value};

use super::arguments::{Arguments, Leftover, Settled, opens_object};
use super::envelope::Named;
use super::names::Tools;

/// The wrapper that a model trained on it may write around parallel calls.
const WRAPPER: &str = "multi_tool_use.parallel";

const MOST_CALLS: usize = 1000;

/// A piece of a call as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Piece<'a> {
    /// The key of its slot, whatever the provider counts with.
    pub(crate) index: Option<&'a str>,
    /// The provider's id; never shown to anybody.
    pub(crate) id: Option<&'a str>,
    /// A piece of the name.
    pub(crate) name: Option<&'a str>,
    /// A piece of the arguments.
    pub(crate) arguments: Option<Cow<'a, str>>,
    /// Provider fields to send back.
    pub(crate) extra: Map<String, Value>,
}

#[derive(Debug)]
struct Call {
    position: u32,
    id: Option<String>,
    name: String,
    arguments: Arguments,
    extra: Map<String, Value>,
    is_announced: bool,
    is_sent: bool,
}

/// How the calls that are still open end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The reply said all it wanted to say.
    Clean,
    /// It was cut: what is open is not run, however complete it looks.
    Cut(&'static str),
}

enum Target {
    Call(usize),
    New,
    Nothing,
}

/// The calls so far.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: Vec<Call>,
    /// The newest call of each slot.
    slots: BTreeMap<String, usize>,
    last: Option<usize>,
    /// Positions of the calls of the contract's object.
    places: Vec<u32>,
    next_position: u32,
    ready: u32,
    broken: u32,
    incomplete: u32,
}

impl Calls {
    /// Whether any structured call was begun.
    pub(crate) fn any_begun(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Nobody asks for so many things at once; keeping them would cost more with every one.
    pub(crate) fn are_too_many(&self) -> bool {
        self.calls.len() > MOST_CALLS
    }

    /// Calls that went out.
    pub(crate) fn ready_count(&self) -> u32 {
        self.ready
    }

    /// Calls that cannot run.
    pub(crate) fn broken_count(&self) -> u32 {
        self.broken
    }

    /// Calls that were cut.
    pub(crate) fn incomplete_count(&self) -> u32 {
        self.incomplete
    }

    /// Takes the next place in wire order.
    pub(crate) fn reserve(&mut self) -> u32 {
        let position = self.next_position;
        self.next_position = position.saturating_add(1);
        position
    }

    /// The position of the call at this place of the contract's object.
    pub(crate) fn place(&mut self, place: usize) -> u32 {
        while self.places.len() <= place {
            let position = self.reserve();
            self.places.push(position);
        }
        self.places.get(place).copied().unwrap_or_default()
    }

    /// Takes a piece of a call.
    pub(crate) fn take(&mut self, piece: Piece<'_>, tools: &Tools, out: &mut Vec<ModelEvent>) {
        let at = match self.target(&piece, tools) {
            Target::Call(at) => at,
            Target::New => self.open(&piece),
            Target::Nothing => return,
        };
        self.last = Some(at);
        let Some(call) = self.calls.get_mut(at) else { return };
        let leftovers = call.add(piece, tools);
        call.announce(tools, out);
        self.send_if_ready(at, tools, out);
        self.add_leftovers(at, leftovers, tools, out);
    }

    /// Keeps provider fields of a piece that is no call by itself.
    pub(crate) fn keep_extra(&mut self, index: Option<&str>, extra: Map<String, Value>) {
        let at = index.map_or(self.last, |index| self.slots.get(index).copied());
        if let Some(call) = at.and_then(|at| self.calls.get_mut(at)) {
            call.extra.extend(extra);
        }
    }

    fn open(&mut self, piece: &Piece<'_>) -> usize {
        let at = self.calls.len();
        let position = self.reserve();
        self.calls.push(Call {
            position,
            id: None,
            name: String::new(),
            arguments: Arguments::new(),
            extra: Map::new(),
            is_announced: false,
            is_sent: false,
        });
        if let Some(index) = piece.index {
            self.slots.insert(index.to_owned(), at);
        }
        at
    }

    fn target(&self, piece: &Piece<'_>, tools: &Tools) -> Target {
        let by_index = piece.index.and_then(|index| self.slots.get(index).copied());
        let by_id = piece.id.and_then(|id| self.by_id(id));
        match (piece.index, by_index, piece.id, piece.name) {
            (Some(_), Some(at), _, _) => self.in_used_slot(at, piece, tools),
            (_, _, None, None) => self.anonymous(piece),
            (Some(_), None, Some(_), None) => by_id.map_or(Target::New, Target::Call),
            (None, _, Some(_), None) => by_id.or(self.last).map_or(Target::New, Target::Call),
            (Some(_), None, _, Some(_)) => Target::New,
            (None, _, id, Some(_)) => {
                let continued = if id.is_some() { by_id } else { self.last };
                continued.map_or(Target::New, |at| self.in_used_slot(at, piece, tools))
            }
        }
    }

    fn by_id(&self, id: &str) -> Option<usize> {
        self.calls.iter().rposition(|call| call.id.as_deref() == Some(id))
    }

    /// A piece without id and name continues what is open. It may begin a call of its own only when
    /// nothing is.
    fn anonymous(&self, piece: &Piece<'_>) -> Target {
        let is_open = |at: &usize| self.calls.get(*at).is_some_and(|call| call.arguments.is_open());
        let newest_open = self.calls.iter().rposition(|call| call.arguments.is_open());
        if let Some(at) = self.last.filter(is_open).or(newest_open) {
            return Target::Call(at);
        }
        let begins = piece.arguments.as_deref().is_some_and(opens_object);
        match self.last {
            Some(at) if piece.index.is_none() || !begins => Target::Call(at),
            Some(_) | None if begins => Target::New,
            Some(_) | None => Target::Nothing,
        }
    }

    fn in_used_slot(&self, at: usize, piece: &Piece<'_>, tools: &Tools) -> Target {
        let Some(call) = self.calls.get(at) else { return Target::New };
        let Some(name) = piece.name else { return Target::Call(at) };
        let is_other_id = match (piece.id, call.id.as_deref()) {
            (Some(new), Some(known)) => new != known,
            (Some(_) | None, None) | (None, Some(_)) => false,
        };
        let arguments = piece.arguments.as_deref().unwrap_or_default();
        let is_other_name = !call.name.is_empty() && call.is_another(name, tools);
        let follows = call.arguments.is_complete() && opens_object(arguments);
        let is_known_id = piece.id.is_some() && piece.id == call.id.as_deref();
        let is_same_again = !is_other_name && (is_known_id || arguments.trim() == "{}");
        if is_other_id || is_other_name || (follows && !is_same_again) {
            Target::New
        } else {
            Target::Call(at)
        }
    }

    fn send_if_ready(&mut self, at: usize, tools: &Tools, out: &mut Vec<ModelEvent>) {
        let Some(call) = self.calls.get_mut(at) else { return };
        if call.is_sent || call.name.is_empty() || call.may_still_grow(tools) {
            return;
        }
        let Some(arguments) = call.arguments.ready().cloned() else { return };
        call.is_sent = true;
        let (position, name, opaque) = (call.position, call.name.clone(), call.opaque());
        self.send(ReadyCall { position, name, arguments, opaque }, tools, out);
    }

    /// Sends a complete call out, unrolling the wrapper around parallel calls.
    pub(crate) fn send(&mut self, call: ReadyCall, tools: &Tools, out: &mut Vec<ModelEvent>) {
        if call.name == WRAPPER {
            let wrapped = unwrap_parallel(&call.arguments, tools);
            if !wrapped.is_empty() {
                self.send_wrapped(&call, wrapped, out);
                return;
            }
        }
        let name = tools.resolve(&call.name).map(str::to_owned);
        self.ready = self.ready.saturating_add(1);
        let name = name.unwrap_or_else(|| call.name.clone());
        out.push(ModelEvent::CallReady(ReadyCall { name, ..call }));
    }

    fn send_wrapped(&mut self, whole: &ReadyCall, calls: Vec<Named>, out: &mut Vec<ModelEvent>) {
        for (nth, (name, arguments)) in calls.into_iter().enumerate() {
            let position = if nth == 0 { whole.position } else { self.reserve() };
            let opaque = whole.opaque.clone().filter(|_| nth == 0);
            self.ready = self.ready.saturating_add(1);
            out.push(ModelEvent::CallReady(ReadyCall { position, name, arguments, opaque }));
        }
    }

    /// Reports a call that cannot run.
    pub(crate) fn report(
        &mut self,
        position: u32,
        name: &str,
        raw: String,
        problem: &str,
        out: &mut Vec<ModelEvent>,
    ) {
        self.broken = self.broken.saturating_add(1);
        out.push(ModelEvent::CallBroken(BrokenCall {
            position,
            name: name.to_owned(),
            raw,
            problem: problem.to_owned(),
        }));
    }

    /// Reports a call that was cut.
    pub(crate) fn report_cut(
        &mut self,
        position: u32,
        name: &str,
        raw: String,
        problem: &str,
        out: &mut Vec<ModelEvent>,
    ) {
        self.incomplete = self.incomplete.saturating_add(1);
        self.report(position, name, raw, problem, out);
    }

    fn add_leftovers(
        &mut self,
        at: usize,
        leftovers: Vec<Leftover>,
        tools: &Tools,
        out: &mut Vec<ModelEvent>,
    ) {
        let name = self.calls.get(at).map(|call| call.name.clone()).unwrap_or_default();
        for leftover in leftovers {
            let position = self.reserve();
            match leftover {
                Leftover::Again(arguments) if !name.is_empty() => {
                    let name = name.clone();
                    self.send(ReadyCall { position, name, arguments, opaque: None }, tools, out);
                }
                Leftover::Again(arguments) => {
                    let raw = Value::Object(arguments).to_string();
                    self.report(position, &name, raw, NO_NAME, out);
                }
                Leftover::Stray(raw) => {
                    let problem = "a further object stands behind the arguments";
                    self.report(position, &name, raw, problem, out);
                }
            }
        }
    }

    /// Ends what is open.
    pub(crate) fn finish(&mut self, end: End, tools: &Tools, out: &mut Vec<ModelEvent>) {
        for at in 0..self.calls.len() {
            self.finish_one(at, end, tools, out);
            let leftover = self.calls.get_mut(at).and_then(|call| call.arguments.open_leftover());
            self.add_leftovers(at, leftover.into_iter().collect(), tools, out);
        }
    }

    fn finish_one(&mut self, at: usize, end: End, tools: &Tools, out: &mut Vec<ModelEvent>) {
        let Some(call) = self.calls.get_mut(at) else { return };
        let is_phantom = call.name.is_empty() && call.arguments.is_blank();
        if std::mem::replace(&mut call.is_sent, true) || is_phantom {
            return;
        }
        let name = tools.resolve(&call.name).unwrap_or(&call.name).to_owned();
        let (position, raw, opaque) = (call.position, call.arguments.raw(), call.opaque());
        let is_open = call.arguments.is_open();
        match (end, call.arguments.settle()) {
            (End::Cut(why), _) => self.report_cut(position, &name, raw, why, out),
            (End::Clean, _) if name.is_empty() => self.report(position, &name, raw, NO_NAME, out),
            (End::Clean, Settled::Object(arguments)) => {
                self.send(ReadyCall { position, name, arguments, opaque }, tools, out);
            }
            (End::Clean, Settled::Broken(problem)) if is_open => {
                self.report_cut(position, &name, raw, &problem, out);
            }
            (End::Clean, Settled::Broken(problem)) => {
                self.report(position, &name, raw, &problem, out);
            }
        }
    }
}

const NO_NAME: &str = "the call names no tool";

impl Call {
    fn add(&mut self, piece: Piece<'_>, tools: &Tools) -> Vec<Leftover> {
        if self.id.is_none() {
            self.id = piece.id.map(str::to_owned);
        }
        if let Some(name) = piece.name {
            self.name = tools.join_name(&self.name, name, self.arguments.is_blank());
        }
        self.extra.extend(piece.extra);
        piece.arguments.map(|fragment| self.arguments.push(&fragment)).unwrap_or_default()
    }

    fn announce(&mut self, tools: &Tools, out: &mut Vec<ModelEvent>) {
        let is_settled = !self.may_still_grow(tools) || !self.arguments.is_blank();
        if self.is_announced || self.is_sent || self.name.is_empty() || !is_settled {
            return;
        }
        self.is_announced = true;
        let name = tools.resolve(&self.name).unwrap_or(&self.name).to_owned();
        out.push(ModelEvent::CallStarted { position: self.position, name });
    }

    /// The name is none of the tools, but the start of one.
    fn may_still_grow(&self, tools: &Tools) -> bool {
        tools.resolve(&self.name).is_none() && tools.may_become(&self.name)
    }

    /// A name that neither repeats nor continues the known one, and is a tool of its own.
    fn is_another(&self, name: &str, tools: &Tools) -> bool {
        let joined = tools.join_name(&self.name, name, self.arguments.is_blank());
        let known = tools.resolve(&self.name);
        joined == self.name
            && known.is_some()
            && tools.resolve(name).is_some_and(|new| known != Some(new))
    }

    fn opaque(&self) -> Option<Value> {
        (!self.extra.is_empty()).then(|| Value::Object(self.extra.clone()))
    }
}

/// The calls inside the wrapper; none unless every one of them is a tool.
fn unwrap_parallel(arguments: &Map<String, Value>, tools: &Tools) -> Vec<Named> {
    let uses = arguments.get("tool_uses").and_then(Value::as_array);
    let read = |inner: &Value| {
        let name = tools.resolve(inner.get("recipient_name")?.as_str()?)?;
        let parameters =
            inner.get("parameters").map_or_else(|| Some(Map::new()), |p| p.as_object().cloned())?;
        Some((name.to_owned(), parameters))
    };
    uses.and_then(|uses| uses.iter().map(read).collect()).unwrap_or_default()
}
