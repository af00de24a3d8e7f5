//! Conversations of our own, by a seed: planted facts, updates, contradictions, instructions, secrets,
//! calls with results, chatter, in several languages. They are not like people, and good figures on
//! them prove little; they are there so that a change that breaks something is seen without anybody's
//! data.

use super::data::{Asked, Dialogue, Said};

/// Turns of a conversation, about.
const TURNS: usize = 240;

/// The sentences of a language, with `{s}` for a subject, `{a}` for an attribute, `{v}` for a value.
struct Language {
    states: &'static [&'static str],
    updates: &'static [&'static str],
    asks: &'static [&'static str],
    instructs: &'static [&'static str],
    chats: &'static [&'static str],
    answers: &'static [&'static str],
    attributes: &'static [&'static str],
}

const LANGUAGES: [Language; 5] = [
    Language {
        states: &[
            "The {a} of {s} is {v}.",
            "Just so you know, the {a} of {s} is {v}, we checked it this morning.",
        ],
        updates: &[
            "No, the {a} of {s} is {v}.",
            "Correction: the {a} of {s} was changed to {v} last night.",
        ],
        asks: &["What is the {a} of {s}?", "Do you remember which {a} {s} has?"],
        instructs: &[
            "Always answer with the name of the host first.",
            "Never restart {s} without asking me.",
            "From now on, write dates as year-month-day.",
        ],
        chats: &[
            "How was the weekend?",
            "Let me get a coffee first.",
            "That sounds good, thanks.",
            "Give me a minute, the others are still talking.",
            "I am looking at the dashboard again and it seems calm.",
            "Could you say that in other words?",
        ],
        answers: &[
            "Sure, I can look at that.",
            "Here is what I would do next: look at the logs, compare them with yesterday, and then decide.",
            "That is fine; tell me when you are ready to go on.",
            "I have nothing new so far.",
        ],
        attributes: &["port", "owner", "region", "version", "backup time", "budget"],
    },
    Language {
        states: &["Die {a} von {s} ist {v}.", "Zur Info: die {a} von {s} ist {v}."],
        updates: &["Nein, die {a} von {s} ist jetzt {v}."],
        asks: &["Was ist die {a} von {s}?"],
        instructs: &[
            "Antworte ab jetzt immer auf Deutsch.",
            "Niemals {s} ohne Rückfrage neu starten.",
        ],
        chats: &[
            "Wie war das Wochenende?",
            "Ich hole erst einen Kaffee.",
            "Klingt gut, danke.",
            "Einen Moment noch bitte.",
        ],
        answers: &["Gern, das sehe ich mir an.", "Bisher gibt es nichts Neues von meiner Seite."],
        attributes: &["Portnummer", "Version", "Region", "Frist"],
    },
    Language {
        states: &["La {a} de {s} es {v}."],
        updates: &["No, la {a} de {s} es ahora {v}."],
        asks: &["¿Cuál es la {a} de {s}?"],
        instructs: &["Siempre responde con una lista corta."],
        chats: &["¿Qué tal el fin de semana?", "Voy a por un café.", "Suena bien, gracias."],
        answers: &["Claro, lo miro enseguida.", "Por ahora no hay nada nuevo."],
        attributes: &["versión", "región", "fecha"],
    },
    Language {
        states: &["La {a} de {s} est {v}."],
        updates: &["Non, la {a} de {s} est maintenant {v}."],
        asks: &["Quelle est la {a} de {s} ?"],
        instructs: &["Réponds toujours en français."],
        chats: &["Comment était le week-end ?", "Je prends un café d'abord.", "Très bien, merci."],
        answers: &["Bien sûr, je regarde.", "Rien de nouveau pour le moment."],
        attributes: &["version", "région", "date"],
    },
    Language {
        states: &["{s} 的{a}是 {v}。"],
        updates: &["不对，{s} 的{a}是 {v}。"],
        asks: &["{s} 的{a}是什么？"],
        instructs: &["从现在起请用中文回答。"],
        chats: &["周末过得怎么样？", "我先去喝杯咖啡。", "听起来不错，谢谢。"],
        answers: &["好的，我来看看。", "目前没有新的消息。"],
        attributes: &["端口", "版本", "地区"],
    },
];

const SUBJECTS: [&str; 16] = [
    "Orion",
    "web-03",
    "the billing service",
    "Atlas",
    "db-staging",
    "Falcon",
    "the north gateway",
    "Juniper",
    "cache-7",
    "Meridian",
    "the mail relay",
    "Quartz",
    "node-12",
    "Sierra",
    "the invoice job",
    "Tundra",
];
const VALUES: [&str; 12] = [
    "8080",
    "5439",
    "Ada Lovelace",
    "eu-west-3",
    "v2.14.1",
    "03:30",
    "40 GB",
    "Lisbon",
    "12,500 euros",
    "2026-11-04",
    "Kim Osei",
    "r7g.large",
];

/// One conversation with its questions. The same seed makes the same.
pub fn dialogue(seed: u64, number: u64) -> Dialogue {
    let mut making = Making::new(seed.wrapping_mul(1_000_003).wrapping_add(number));
    while making.dialogue.turns.len() < TURNS {
        making.step();
    }
    making.dialogue.session = format!("generated-{seed}-{number}");
    making.ask();
    making.dialogue
}

struct Planted {
    language: usize,
    subject: &'static str,
    attribute: &'static str,
    at: usize,
}

struct Making {
    chance: Chance,
    language: usize,
    dialogue: Dialogue,
    planted: Vec<Planted>,
}

impl Making {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed ^ 0x9e37_79b9_7f4a_7c15);
        let language = if chance.below(2) == 0 { 0 } else { chance.below(LANGUAGES.len()) };
        Self { chance, language, dialogue: Dialogue::default(), planted: Vec::new() }
    }

    fn step(&mut self) {
        match self.chance.below(20) {
            0..=3 => self.plant(),
            4..=5 => self.update(),
            6 => self.instruct(),
            7 => self.secret(),
            8..=10 => self.call(),
            _ => self.chat(),
        }
    }

    fn sentence(
        &mut self,
        of: fn(&Language) -> &'static [&'static str],
        words: [&str; 3],
    ) -> String {
        let all = LANGUAGES.get(self.language).map_or(&[][..], of);
        let template = self.chance.one(all).unwrap_or_default();
        let [subject, attribute, value] = words;
        template.replace("{s}", subject).replace("{a}", attribute).replace("{v}", value)
    }

    fn say(&mut self, role: &str, text: String) -> usize {
        let at = self.dialogue.turns.len();
        let id = at.saturating_add(1).to_string();
        let said = Said { id, role: role.to_owned(), text, supersedes: None, pinned: false };
        self.dialogue.turns.push(said);
        at
    }

    fn value(&mut self) -> String {
        let value = self.chance.one(&VALUES).unwrap_or_default();
        let number = self.chance.below(900).saturating_add(100);
        if self.chance.below(3) == 0 { format!("{value}-{number}") } else { value.to_owned() }
    }

    fn plant(&mut self) {
        let subject = self.chance.one(&SUBJECTS).unwrap_or_default();
        let attributes =
            LANGUAGES.get(self.language).map_or(&[][..], |language| language.attributes);
        let attribute = self.chance.one(attributes).unwrap_or_default();
        let known = |one: &Planted| (one.subject, one.attribute) == (subject, attribute);
        if self.planted.iter().any(known) {
            return self.chat();
        }
        let value = self.value();
        let text = self.sentence(|language| language.states, [subject, attribute, &value]);
        let at = self.say("user", text);
        let language = self.language;
        self.planted.push(Planted { language, subject, attribute, at });
        self.answer();
    }

    /// The newest value counts; the old turn is what it replaces.
    fn update(&mut self) {
        let place = self.chance.below(self.planted.len().max(1));
        let Some(planted) = self.planted.get(place) else { return self.chat() };
        let (subject, attribute, old) = (planted.subject, planted.attribute, planted.at);
        let value = self.value();
        let text = self.sentence(|language| language.updates, [subject, attribute, &value]);
        let at = self.say("user", text);
        let old = self.dialogue.turns.get(old).map(|turn| turn.id.clone());
        if let Some(turn) = self.dialogue.turns.get_mut(at) {
            turn.supersedes = old;
        }
        if let Some(planted) = self.planted.get_mut(place) {
            planted.at = at;
        }
        self.answer();
    }

    fn instruct(&mut self) {
        let subject = self.chance.one(&SUBJECTS).unwrap_or_default();
        let text = self.sentence(|language| language.instructs, [subject, "", ""]);
        let at = self.say("user", text);
        if let Some(turn) = self.dialogue.turns.get_mut(at) {
            turn.pinned = true;
        }
        self.answer();
    }

    /// As texts are when they reach memory: the secret itself was taken out.
    fn secret(&mut self) {
        let subject = self.chance.one(&SUBJECTS).unwrap_or_default();
        self.say(
            "user",
            format!(
                "The password of {subject} is [redacted password 1], it is stored in the vault."
            ),
        );
        self.answer();
    }

    fn call(&mut self) {
        let subject = self.chance.one(&SUBJECTS).unwrap_or_default();
        self.say("assistant", format!("look({{\"host\": \"{subject}\"}})"));
        let load = self.chance.below(100);
        let lines = self.chance.below(12).saturating_add(1);
        let line = format!("{{\"host\": \"{subject}\", \"load\": {load}, \"up\": true}}");
        let text = vec![line; lines].join("\n");
        self.say("tool", text);
        self.answer();
    }

    fn chat(&mut self) {
        let text = self.sentence(|language| language.chats, ["", "", ""]);
        self.say("user", text);
        self.answer();
    }

    fn answer(&mut self) {
        let text = self.sentence(|language| language.answers, ["", "", ""]);
        self.say("assistant", text);
    }

    fn ask(&mut self) {
        for planted in std::mem::take(&mut self.planted) {
            self.language = planted.language;
            let words = [planted.subject, planted.attribute, ""];
            let text = self.sentence(|language| language.asks, words);
            self.dialogue.questions.push(Asked { text, evidence: vec![planted.at] });
        }
    }
}

/// `SplitMix64`: chance that is the same everywhere.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let most = u64::try_from(most.max(1)).unwrap_or(1);
        usize::try_from((mixed ^ (mixed >> 31)) % most).unwrap_or(0)
    }

    fn one(&mut self, all: &[&'static str]) -> Option<&'static str> {
        let at = self.below(all.len());
        all.get(at).copied()
    }
}
