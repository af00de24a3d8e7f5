//! Four planners and a provider whose bucket is filled anew each second, in virtual time.

use std::collections::{BTreeMap, VecDeque};

use admission::pool::{Decision, Event, Limits, Pool};

const MS: u64 = 1000;
const SECOND: u64 = 1_000_000;
const PLANNERS: usize = 4;
/// Requests that the provider answers each second.
const RATE: u64 = 50;

/// What was counted after the warm-up.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) sent: u64,
    pub(crate) refused: u64,
    pub(crate) answered: BTreeMap<String, u64>,
}

struct World {
    pool: Pool,
    limits: Limits,
    random: fastrand::Rng,
    now: u64,
    ids: u64,
    /// Waiting requests and when the first of them asks again, by planner and tenant.
    queues: BTreeMap<(usize, String), (VecDeque<u64>, u64)>,
    /// Requests on their way, by arrival.
    under_way: Vec<(u64, usize, String, String)>,
    bucket: u64,
    counted: Counted,
}

impl World {
    fn ask(&mut self, planner: usize, tenant: &str) {
        self.ids += 1;
        let id = format!("{}", self.ids);
        let event =
            Event::Ask { id: id.clone(), tenant: tenant.to_owned(), tokens: 0, lease: 10 * SECOND };
        let decision = self.pool.apply(&self.limits, &event, self.now);
        let queue = self.queues.get_mut(&(planner, tenant.to_owned())).unwrap();
        match decision {
            Decision::Go(pause) => {
                queue.0.pop_front();
                queue.1 = self.now;
                let way = self.random.u64(MS..4 * MS);
                self.under_way.push((self.now + pause + way, planner, tenant.to_owned(), id));
            }
            Decision::Wait(pause, _) => {
                queue.1 = self.now + pause + self.random.u64(..=pause / 4);
            }
            Decision::Noted => panic!("no answer to a question"),
        }
    }

    fn arrive(&mut self, counts: bool) {
        let now = self.now;
        let (here, away) =
            std::mem::take(&mut self.under_way).into_iter().partition(|(at, ..)| *at <= now);
        self.under_way = away;
        let here: Vec<(u64, usize, String, String)> = here;
        for (_, planner, tenant, id) in here {
            self.counted.sent += u64::from(counts);
            let event = if self.bucket > 0 {
                self.bucket -= 1;
                *self.counted.answered.entry(tenant.clone()).or_default() += u64::from(counts);
                Event::Done { id, reserved: 0, used: None }
            } else {
                self.counted.refused += u64::from(counts);
                self.queues.get_mut(&(planner, tenant)).unwrap().0.push_front(now);
                Event::Refused { id, reserved: 0, wait: None }
            };
            self.pool.apply(&self.limits, &event, now);
        }
    }
}

/// Plays 75 seconds; `load` is requests a second by tenant, spread over the planners.
pub(crate) fn play(limits: Limits, load: &[(&str, u64)], seed: u64) -> Counted {
    let random = fastrand::Rng::with_seed(seed);
    let mut world = World {
        pool: Pool::default(),
        limits,
        random,
        now: 1_000 * SECOND,
        ids: 0,
        queues: BTreeMap::new(),
        under_way: Vec::new(),
        bucket: RATE,
        counted: Counted::default(),
    };
    for planner in 0..PLANNERS {
        for (tenant, _) in load {
            world.queues.insert((planner, (*tenant).to_owned()), (VecDeque::new(), 0));
        }
    }
    let phase = world.random.u64(..SECOND);
    for step in 0..75_000_u64 {
        world.now += MS;
        if (world.now + phase) % SECOND < MS {
            world.bucket = RATE;
        }
        for (tenant, rate) in load {
            if world.random.u64(..1000) < *rate {
                let planner = world.random.usize(..PLANNERS);
                let now = world.now;
                world.queues.get_mut(&(planner, (*tenant).to_owned())).unwrap().0.push_back(now);
            }
        }
        // Nobody waits longer than ten seconds.
        let patience = world.now - 10 * SECOND;
        world.queues.values_mut().for_each(|(queue, _)| queue.retain(|since| *since > patience));
        let now = world.now;
        let due = |(_, (queue, at)): &(&(usize, String), &(VecDeque<u64>, u64))| {
            !queue.is_empty() && *at <= now
        };
        let asking: Vec<_> = world.queues.iter().filter(due).map(|(who, _)| who.clone()).collect();
        for (planner, tenant) in asking {
            world.ask(planner, &tenant);
        }
        world.arrive(step >= 15_000);
    }
    world.counted
}
