//! What the scripted model does about an input. The user's words carry a seed, and the seed is the
//! script, so that the model's policy stays a pure function of what it was sent.

use serde_json::{Map, Value, json};

use crate::tools::{Behaviour, TOOLS};

/// One turn of the model.
#[derive(Clone, Debug)]
pub struct Turn {
    /// What it says.
    pub text: String,
    /// What it asks for.
    pub calls: Vec<Ask>,
}

/// One call that the model asks for.
#[derive(Clone, Debug)]
pub enum Ask {
    /// A call that can be read, though it may name no tool or break its schema.
    Call {
        /// The tool.
        tool: String,
        /// The arguments.
        arguments: Map<String, Value>,
    },
    /// A call whose arguments never become JSON.
    Broken,
}

/// How a script ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With an answer in words.
    Words,
    /// With the builtin that ends a run.
    Finish,
    /// It goes on with the same call for ever.
    Loops,
}

/// What the model does about one input.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its turns with calls.
    pub turns: Vec<Turn>,
    /// What follows them.
    pub ending: Ending,
    /// Marks the answer, so that the world knows it again.
    pub mark: u64,
}

/// The words of a user whose script has this seed; `tag` tells threads and inputs apart.
pub fn words(tag: &str, seed: u64) -> String {
    format!("Please do {tag} as script {seed} says.")
}

/// The seed in a user's words.
pub fn seed_of(words: &str) -> Option<u64> {
    let rest = words.split(" as script ").nth(1)?;
    rest.split(' ').next()?.parse().ok()
}

impl Script {
    /// The script of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let ending = match random.u32(0..20) {
            0..16 => Ending::Words,
            16..18 => Ending::Finish,
            _ => Ending::Loops,
        };
        let turns = (0..random.usize(1..=3)).map(|n| Turn::new(&mut random, n)).collect();
        Self { turns, ending, mark: seed }
    }

    /// How many calls it asks for until it ends.
    pub fn calls(&self) -> usize {
        self.turns.iter().map(|turn| turn.calls.len()).sum()
    }
}

impl Turn {
    fn new(random: &mut fastrand::Rng, number: usize) -> Self {
        let calls = (0..random.usize(1..=4)).map(|n| Ask::new(random, number * 10 + n)).collect();
        Self { text: format!("Step {number}."), calls }
    }
}

impl Ask {
    fn new(random: &mut fastrand::Rng, number: usize) -> Self {
        match random.u32(0..24) {
            0 => Self::Broken,
            1 => Self::call("no_such_tool", json!({"n": number})),
            2 => Self::call("probe", json!({"n": "not a number"})),
            _ => {
                let tool = TOOLS[random.usize(..TOOLS.len())].name;
                let behaviour = Behaviour::draw(random);
                let ms = random.u32(10..1500);
                Self::call(tool, json!({"n": number, "do": behaviour.word(), "ms": ms}))
            }
        }
    }

    fn call(tool: &str, arguments: Value) -> Self {
        let Value::Object(arguments) = arguments else { unreachable!("written as an object") };
        Self::Call { tool: tool.to_owned(), arguments }
    }

    /// The call that a looping script repeats.
    pub fn looping(seed: u64) -> Self {
        Self::call("probe", json!({"n": seed % 1000, "do": "done", "ms": 20}))
    }
}
