//! Which kind a text is, by how its sentences begin and by what they say, in English, German, Spanish,
//! French and Chinese. Rules are narrow on purpose: a pinned kind takes room for good.

use super::Kind;
use crate::fragment::Origin;
use crate::text::head;

/// Bytes of a text that are looked through.
const LOOKED_THROUGH: usize = 8 * 1024;
/// Words of a quotation that is kept as it is.
const QUOTED_WORDS: usize = 3;
/// Characters of one.
const LONGEST_QUOTE: usize = 400;

/// The kind of a text. Only people instruct: what a tool returns is data and what a model says is its
/// own word, so neither can pin an instruction.
pub fn classify(text: &str, origin: &Origin) -> Kind {
    let text = head(text, LOOKED_THROUGH).to_lowercase().replace('’', "'");
    match origin {
        Origin::User | Origin::Remembered => of_person(&text),
        Origin::Model => of_model(&text),
        Origin::Tool { .. } if warns(&text) => Kind::Warning,
        Origin::Tool { .. } => Kind::Observation,
        Origin::Document { .. } => Kind::Document,
        Origin::Note | Origin::Recalled => Kind::Talk,
    }
}

fn of_person(text: &str) -> Kind {
    let sentences = sentences(text);
    let any_begins = |starts: &[&str]| sentences.iter().any(|one| begins(one, starts));
    if points_to_secret(text) {
        return Kind::CredentialRef;
    }
    if sentences.iter().take(2).any(|one| begins(one, CORRECTION)) || says(text, CORRECTION_INSIDE)
    {
        return Kind::Correction;
    }
    if any_begins(INSTRUCTION) || says(text, INSTRUCTION_INSIDE) {
        return Kind::Instruction;
    }
    let forbids = |one: &&str| begins(one, CONSTRAINT) && !begins(one, NO_CONSTRAINT);
    if sentences.iter().any(forbids) || says(text, CONSTRAINT_INSIDE) {
        return Kind::Constraint;
    }
    if any_begins(OPEN_TASK) || says(text, OPEN_TASK_INSIDE) {
        return Kind::OpenTask;
    }
    if says(text, DECISION) {
        return Kind::Decision;
    }
    if says(text, PREFERENCE) {
        return Kind::Preference;
    }
    plain(text, &sentences)
}

fn of_model(text: &str) -> Kind {
    if says(text, DECISION) {
        return Kind::Decision;
    }
    plain(text, &sentences(text))
}

/// A question if nothing is told beside it.
fn plain(text: &str, sentences: &[&str]) -> Kind {
    let is_question = |one: &&str| one.ends_with(['?', '？']);
    let asked = sentences.iter().filter(|one| is_question(one)).count();
    let told = sentences.len().saturating_sub(asked);
    let says_i = sentences.iter().any(|one| !is_question(one) && begins(one, FIRST_PERSON));
    if asked > 0 && !says_i && told <= asked {
        return Kind::Question;
    }
    if says_i || says(text, FIRST_PERSON_INSIDE) { Kind::Assertion } else { Kind::Talk }
}

/// A tool marks what may harm: a line of its output begins so, or a field of its JSON says so.
fn warns(text: &str) -> bool {
    let marks = |line: &str| {
        let line = line.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '⚠');
        [
            "warning:",
            "warn:",
            "warning ",
            "caution:",
            "danger:",
            "⚠",
            "deprecated:",
            "warnung:",
            "advertencia:",
            "警告",
        ]
        .iter()
        .any(|mark| line.starts_with(mark))
    };
    text.lines().take(200).any(marks)
        || ["\"warning\":\"", "\"warning\": \"", "\"warnings\":[\"", "\"warnings\": [\""]
            .iter()
            .any(|field| text.contains(field))
}

/// Where a secret is kept. The secret itself was taken out before.
fn points_to_secret(text: &str) -> bool {
    let names = says(text, SECRET_NAMES) || text.contains("[redacted");
    names && (says(text, SECRET_PLACES) || text.contains("[redacted"))
}

fn sentences(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['.', '!', '?', '\n', '。', '！', '？', ';']) {
        let width = rest.get(at..).and_then(|from| from.chars().next()).map_or(1, char::len_utf8);
        let (one, beyond) = rest.split_at(at.saturating_add(width));
        all.push(one);
        rest = beyond;
    }
    all.push(rest);
    let trimmed =
        all.into_iter().map(|one| one.trim().trim_start_matches(['-', '*', '"', ' ', '¿', '¡']));
    trimmed.filter(|one| one.chars().any(char::is_alphanumeric)).take(64).collect()
}

fn begins(sentence: &str, starts: &[&str]) -> bool {
    let polite = [
        "please ",
        "and ",
        "but ",
        "so ",
        "also ",
        "ok, ",
        "oh, ",
        "bitte ",
        "por favor, ",
        "por favor ",
        "请",
    ];
    let bare = polite.iter().find_map(|word| sentence.strip_prefix(word)).unwrap_or(sentence);
    starts.iter().any(|start| bare.starts_with(start) || sentence.starts_with(start))
}

/// Whether one of the phrases stands in the text as words of its own.
fn says(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| {
        let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && c.is_ascii());
        text.match_indices(phrase).any(|(at, _)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            let after =
                text.get(at.saturating_add(phrase.len())..).and_then(|after| after.chars().next());
            !is_letter(before) && (!is_letter(after) || phrase.ends_with(' '))
        })
    })
}

/// Words in quotation marks that are kept as they are: approved wording must not come back
/// paraphrased.
pub fn quotes_kept(text: &str) -> Vec<String> {
    let mut kept = Vec::new();
    for (open, close) in [('"', '"'), ('“', '”'), ('«', '»'), ('„', '“'), ('「', '」')]
    {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once(open) {
            let Some((inside, beyond)) = after.split_once(close) else { break };
            let words = inside.split_whitespace().count();
            let is_dense = !inside.is_ascii() && inside.chars().count() >= 6;
            let is_short = inside.chars().count() <= LONGEST_QUOTE;
            if is_short && (words >= QUOTED_WORDS || is_dense) && kept.len() < 8 {
                kept.push(inside.to_owned());
            }
            rest = beyond;
        }
    }
    kept
}

const INSTRUCTION: &[&str] = &[
    "always ",
    "never ",
    "from now on",
    "going forward",
    "in future,",
    "in the future,",
    "whenever i ",
    "when i ask",
    "each time i",
    "every time i",
    "make sure you",
    "make sure to",
    "make sure that",
    "be sure to",
    "remember to always",
    "answer in ",
    "reply in ",
    "respond in ",
    "address me ",
    "call me ",
    "immer ",
    "niemals ",
    "nie ",
    "ab jetzt",
    "von nun an",
    "in zukunft",
    "antworte ",
    "siempre ",
    "nunca ",
    "de ahora en adelante",
    "a partir de ahora",
    "responde ",
    "toujours ",
    "jamais ",
    "désormais",
    "à partir de maintenant",
    "réponds ",
    "总是",
    "始终",
    "永远不要",
    "从现在起",
    "以后",
    "每次",
];
const INSTRUCTION_INSIDE: &[&str] = &[
    "you should always",
    "you must always",
    "you should never",
    "please always",
    "please never",
    "always include",
    "always use ",
    "always format",
    "always provide",
];
const CONSTRAINT: &[&str] = &[
    "do not ",
    "don't ",
    "you must ",
    "you may not",
    "you cannot ",
    "must not",
    "only use ",
    "use only ",
    "under no circumstances",
    "nicht ",
    "keinesfalls",
    "auf keinen fall",
    "du darfst nicht",
    "no debes",
    "no uses",
    "no toques",
    "bajo ninguna",
    "ne touche",
    "il ne faut pas",
    "n'utilise pas",
    "不要",
    "不得",
    "禁止",
    "必须",
];
const NO_CONSTRAINT: &[&str] = &[
    "don't worry",
    "do not worry",
    "don't forget",
    "do not forget",
    "don't you",
    "don't mention",
    "don't get me",
    "don't know",
    "don't think",
    "don't i",
    "don't hesitate",
    "don't be ",
    "don't give up",
    "don't let",
];
const CONSTRAINT_INSIDE: &[&str] = &[
    "must not",
    "must never",
    "no more than",
    "not allowed to",
    "is forbidden",
    "darf nicht",
    "dürfen nicht",
    "no más de",
    "pas plus de",
    "maximum budget",
    "budget limit",
    "hard limit",
    "hard requirement",
];
const OPEN_TASK: &[&str] = &[
    "todo",
    "to do:",
    "remind me",
    "don't forget",
    "do not forget",
    "remember to ",
    "next step",
    "open task",
    "erinnere mich",
    "vergiss nicht",
    "recuérdame",
    "no olvides",
    "rappelle-moi",
    "n'oublie pas",
    "提醒我",
    "别忘了",
    "待办",
];
const OPEN_TASK_INSIDE: &[&str] = &[
    "still needs to be",
    "still has to be",
    "still have to be",
    "remains to be done",
    "muss noch",
    "todavía hay que",
    "il reste à",
];
const DECISION: &[&str] = &[
    "let's go with",
    "we decided",
    "i decided",
    "i've decided",
    "we've decided",
    "we will use",
    "we'll use",
    "we agreed",
    "we settled on",
    "i settled on",
    "final decision",
    "the decision is",
    "i chose ",
    "we chose ",
    "i'll go with",
    "we'll go with",
    "wir haben entschieden",
    "wir nehmen",
    "entschieden",
    "hemos decidido",
    "decidimos",
    "he decidido",
    "nous avons décidé",
    "j'ai décidé",
    "on prend",
    "我们决定",
    "我决定",
    "决定使用",
];
const CORRECTION: &[&str] = &[
    "no,",
    "no -",
    "nope,",
    "actually,",
    "actually ",
    "correction",
    "sorry, i meant",
    "i meant",
    "wait, ",
    "that's wrong",
    "that is wrong",
    "that's not right",
    "not quite",
    "nein,",
    "korrektur",
    "eigentlich",
    "ich meinte",
    "corrección",
    "en realidad",
    "quise decir",
    "non,",
    "en fait",
    "je voulais dire",
    "更正",
    "不对",
    "其实",
    "我的意思是",
];
const CORRECTION_INSIDE: &[&str] = &[
    "i was wrong",
    "i misspoke",
    "has changed to",
    "have changed to",
    "was changed to",
    "is now ",
    "was updated to",
    "has been updated to",
    "not anymore",
    "no longer ",
];
const PREFERENCE: &[&str] = &[
    "i prefer",
    "i'd prefer",
    "i would prefer",
    "i'd rather",
    "i would rather",
    "my favorite",
    "my favourite",
    "i like to ",
    "i don't like",
    "i hate ",
    "ich bevorzuge",
    "mir ist lieber",
    "ich mag",
    "prefiero",
    "me gusta",
    "je préfère",
    "j'aime",
    "我喜欢",
    "我更喜欢",
    "我偏好",
];
const FIRST_PERSON: &[&str] = &[
    "i ", "i'm", "i've", "i'd", "i'll", "my ", "we ", "we're", "we've", "our ", "ich ", "mein",
    "wir ", "unser", "yo ", "mi ", "nosotros", "nuestr", "je ", "j'", "mon ", "ma ", "nous ",
    "notre ", "我",
];
const FIRST_PERSON_INSIDE: &[&str] = &[
    "i'm ", "i am ", "i've ", "i was ", "i have ", "i had ", "i went", "i got", "my ", "we went",
    "ich habe", "ich bin", "tengo", "soy ", "j'ai ", "je suis",
];
const SECRET_NAMES: &[&str] = &[
    "password",
    "passphrase",
    "api key",
    "api-key",
    "access key",
    "access token",
    "api token",
    "credentials",
    "private key",
    "secret key",
    "passwort",
    "zugangsdaten",
    "contraseña",
    "credenciales",
    "mot de passe",
    "identifiants",
    "密码",
    "密钥",
];
const SECRET_PLACES: &[&str] = &[
    "is in ",
    "are in ",
    "is stored",
    "are stored",
    "is kept",
    "are kept",
    "lives in",
    "saved in",
    "vault",
    "keychain",
    "1password",
    "secret manager",
    "env var",
    "environment variable",
    "liegt in",
    "steht in",
    "está en",
    "están en",
    "se trouve",
    "est dans",
    "保存在",
    "存放在",
    "在",
];
