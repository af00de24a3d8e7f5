//! What planners of the small world do, and what happens to them.

use planner_core::accept::Judge;
use planner_core::live_turn::LiveTurn;
use planner_core::view::{Armed, Evaluated, Owner, Spans};
use planner_core::{Decision, Step, View, Wake, decide, prompt};
use proto::call::{Barred, Start};
use proto::fact::{Fact, SealReason, Usage};
use proto::ids::{InstanceId, Sequence};
use proto::model::{ReadyCall, ReplyEnd};
use proto::record::Record;
use proto::subject::Leaf;

use crate::world::{arguments, call_id, instance};

use super::{Delivery, Handling, MAX_STEPS, Planner, Sim, TOOLS, second};

impl Sim {
    pub(super) fn take(&mut self, planner: usize) {
        if self.planners[planner].handling.is_some() || self.waiting.is_empty() {
            return;
        }
        let delivery = self.waiting.remove(planner % self.waiting.len());
        let Wake { sequence, .. } = delivery.wake;
        self.trace.push(format!("{} takes {sequence}", self.planners[planner].name));
        let by_others = delivery.by_observation && delivery.first;
        let handling = Handling {
            delivery,
            fold: self.world.thread.clone(),
            begun: None,
            owner: (Sequence::NONE, Owner::Unasked),
            armed: if by_others { Armed::ByOthers } else { Armed::Unknown },
            evaluated: None,
            live: None,
            position: 0,
            steps: 0,
            void: false,
        };
        self.planners[planner].handling = Some(handling);
    }

    /// The planner dies; another with a new name takes its place.
    pub(super) fn crash(&mut self, planner: usize) {
        self.lives += 1;
        self.trace.push(format!("{} dies", self.planners[planner].name));
        self.planners[planner].name = instance(&format!("p{planner}-{}", self.lives));
        self.hand_back(planner);
    }

    fn hand_back(&mut self, planner: usize) {
        let Some(handling) = self.planners[planner].handling.take() else { return };
        if !handling.void {
            self.waiting.push(Delivery { first: false, ..handling.delivery });
        }
    }

    /// The bus takes the holder of a delivery for dead although it lives.
    pub(super) fn deliver_again(&mut self, planner: usize) {
        if let Some(handling) = self.planners[planner].handling.as_ref().filter(|h| !h.void) {
            self.waiting.push(Delivery { first: false, ..handling.delivery });
        }
    }

    fn view_and_decide(&self, planner: usize) -> Decision {
        let Planner { name, handling } = &self.planners[planner];
        let handling = handling.as_ref().unwrap();
        let open = handling.fold.run.as_ref().and_then(|run| run.open.as_ref());
        let asked = open.filter(|open| open.sequence == handling.owner.0);
        decide(&View {
            thread: &handling.fold,
            now: self.world.now,
            me: name,
            wake: handling.delivery.wake,
            begun: handling.begun,
            owner: asked.map_or(Owner::Unasked, |_| handling.owner.1),
            armed: handling.armed,
            agents: &self.world.book,
            kept: ("kept", ""),
            evaluated: handling.evaluated.as_ref(),
            spans: Spans::default(),
        })
    }

    /// One step of a planner, decided from a fold that may be old.
    pub(super) fn step(&mut self, planner: usize) {
        let Some(handling) = &self.planners[planner].handling else { return };
        if handling.live.is_some() {
            return;
        }
        let decision = self.view_and_decide(planner);
        self.reached.insert(decision.branch);
        let branch = decision.branch.as_str();
        self.trace.push(format!(
            "{} {branch} behind {}",
            self.planners[planner].name,
            self.world.last()
        ));
        let handling = self.planners[planner].handling.as_mut().unwrap();
        handling.steps += 1;
        assert!(handling.steps < MAX_STEPS, "no end: {:?}", decision.branch);
        match decision.step {
            Step::Fact(fact) => {
                let begins = matches!(*fact, Fact::TurnStarted(_));
                let landed = self.append_plan(planner, Leaf::Fact, Record::Fact(*fact));
                let handling = self.planners[planner].handling.as_mut().unwrap();
                if begins {
                    handling.evaluated = None;
                    handling.begun = landed;
                }
            }
            Step::Dispatch(call) => {
                let leaf = Leaf::ToolCall(call.tool.clone());
                self.append_plan(planner, leaf, Record::ToolCall(*call));
            }
            Step::Bar(id) => {
                let leaf = Leaf::Start(id.clone());
                if !self.world.has(&leaf) {
                    let by = self.planners[planner].name.clone();
                    let barred = Barred { tool_call_id: id, by, at: self.world.now };
                    self.world.append(leaf, Record::Start(Start::Barred(barred)));
                }
                self.refold(planner);
            }
            Step::Arm(at) => {
                if handling.fold.plan_last == self.world.thread.plan_last {
                    handling.armed = Armed::At(at);
                    self.unheld = self.unheld.filter(|_| !handling.void);
                    self.schedule = Some(at);
                } else {
                    self.refold(planner);
                }
            }
            Step::AskOwner(owner) => self.ask(planner, &owner),
            Step::Evaluate => {
                handling.evaluated = Some(match handling.steps % 3 {
                    0 => Evaluated::Fits,
                    1 => Evaluated::Breaks("no".into()),
                    _ => Evaluated::Overrun,
                });
            }
            Step::Hint(_) => {}
            Step::Reason => self.reason(planner),
            Step::HandBack(_) => self.hand_back(planner),
            Step::Rest => self.rest(planner),
        }
    }

    /// Appends behind the fold's last record of the chain, or is refused and reads again.
    fn append_plan(&mut self, planner: usize, leaf: Leaf, record: Record) -> Option<Sequence> {
        let handling = self.planners[planner].handling.as_ref().unwrap();
        let fits = handling.fold.plan_last == self.world.thread.plan_last;
        if let (true, Record::Fact(Fact::TurnStarted(started))) = (fits, &record) {
            self.unheld = handling.void.then_some(started.deadline);
        }
        let landed = fits.then(|| self.world.append(leaf, record));
        self.refold(planner);
        landed
    }

    fn refold(&mut self, planner: usize) {
        let handling = self.planners[planner].handling.as_mut().unwrap();
        handling.fold = self.world.thread.clone();
        handling.armed = Armed::Unknown;
    }

    fn ask(&mut self, planner: usize, owner: &InstanceId) {
        let handling = self.planners[planner].handling.as_ref().unwrap();
        let open = handling.fold.run.as_ref().unwrap().open.as_ref().unwrap().sequence;
        let works = self.planners.iter().any(|other| {
            let live = other.handling.as_ref().and_then(|handling| handling.live.as_ref());
            other.name == *owner && live.is_some_and(|(started, ..)| *started == open)
        });
        let answer = if works { Owner::Working } else { Owner::Gone };
        self.planners[planner].handling.as_mut().unwrap().owner = (open, answer);
    }

    fn reason(&mut self, planner: usize) {
        let handling = self.planners[planner].handling.as_mut().unwrap();
        let run = handling.fold.run.as_ref().unwrap();
        let open = run.open.as_ref().unwrap();
        let Some(agent) = self.world.book.0.get(&open.started.agent) else {
            return self.hand_back(planner);
        };
        prompt::request(&handling.fold, agent, &self.world.toolbox).unwrap();
        let live = LiveTurn::new(open.started.run, open.started.turn, open.sequence);
        handling.live = Some((open.sequence, live, handling.fold.plan_last));
        handling.begun = None;
        handling.position = 0;
    }

    /// Nothing is left to do, so far as the planner knows: the delivery is acknowledged, for
    /// whoever holds it.
    fn rest(&mut self, planner: usize) {
        let handling = self.planners[planner].handling.take().unwrap();
        let sequence = handling.delivery.wake.sequence;
        self.trace.push(format!("{sequence} is acknowledged"));
        self.waiting.retain(|delivery| delivery.wake.sequence != sequence);
        let open = self.world.thread.run.as_ref().and_then(|run| run.open.as_ref());
        for other in &mut self.planners {
            let same = |handling: &&mut Handling| handling.delivery.wake.sequence == sequence;
            let Some(handling) = other.handling.as_mut().filter(same) else { continue };
            handling.void = true;
            if let Some(open) = open.filter(|open| open.started.owner == other.name) {
                self.unheld = Some(open.started.deadline);
            }
        }
    }

    /// One event of a reply, if one streams.
    pub(super) fn reply(&mut self, planner: usize, choice: u8) {
        let Some(handling) = self.planners[planner].handling.as_mut() else { return };
        let Some((started, mut live, chain)) = handling.live.take() else { return };
        match choice % 8 {
            0..=3 => {
                let chain = self.call(planner, &mut live, chain, choice);
                let handling = self.planners[planner].handling.as_mut().unwrap();
                match chain {
                    Some(chain) => handling.live = Some((started, live, chain)),
                    None => self.refold(planner),
                }
            }
            4 => {
                live.say("words ");
                handling.live = Some((started, live, chain));
            }
            5 if !live.is_untouched() => {
                let fact = Fact::TurnSealed(live.seal(SealReason::StreamBroken));
                self.end_turn(planner, chain, fact);
            }
            _ => {
                let usage = Some(Usage { prompt_tokens: 10, ..Usage::default() });
                let (finish, model, opaque) = (None, None, None);
                let end = ReplyEnd { finish, usage, model, confidence: None, answer: None, opaque };
                self.end_turn(planner, chain, Fact::TurnCompleted(live.complete(end, "m")));
            }
        }
    }

    fn end_turn(&mut self, planner: usize, chain: Sequence, fact: Fact) {
        if chain == self.world.thread.plan_last {
            self.world.append(Leaf::Fact, Record::Fact(fact));
        }
        self.refold(planner);
    }

    /// The model asks for a call; answers with the chain unless somebody else moved it.
    fn call(
        &mut self,
        planner: usize,
        live: &mut LiveTurn,
        chain: Sequence,
        choice: u8,
    ) -> Option<Sequence> {
        self.ids += 1;
        let id = call_id(&format!("c{}", self.ids));
        let handling = self.planners[planner].handling.as_mut().unwrap();
        let position = handling.position;
        handling.position += 1;
        let tool = TOOLS[usize::from(choice / 4) % TOOLS.len()].to_owned();
        let ready = ReadyCall { position, name: tool, arguments: arguments("a"), opaque: None };
        let thread = &handling.fold;
        let name = thread.agent.as_ref().unwrap();
        let agent = &self.world.book.0.get(name).cloned().unwrap_or_else(second);
        let toolbox = &self.world.toolbox;
        let judge = Judge { thread, agent, toolbox, tainted: thread.is_tainted() };
        let spans = Spans::default();
        let early = live.call_ready(&judge, id.clone(), ready, self.world.now, spans);
        let Some(record) = early else { return Some(chain) };
        if chain != self.world.thread.plan_last {
            return None;
        }
        live.dispatched(id);
        Some(self.world.append(Leaf::ToolCall(record.tool.clone()), Record::ToolCall(record)))
    }
}
