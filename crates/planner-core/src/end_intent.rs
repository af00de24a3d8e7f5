//! Words by which a user ends a run, in several languages.
//!
//! The whole input has to be such a phrase, apart from case, punctuation and politeness: "end the
//! process" is a task, "that's all, thanks" is not.

/// Phrases that end a run when an input says nothing else.
const PHRASES: &[&str] = &[
    // English
    "that is all",
    "thats all",
    "that will be all",
    "thatll be all",
    "we are done",
    "were done",
    "i am done",
    "im done",
    "end conversation",
    "end the conversation",
    "end chat",
    "end the chat",
    "end session",
    "end the session",
    "stop here",
    "lets stop here",
    "you can stop",
    "you can stop now",
    "goodbye",
    "good bye",
    "bye",
    "bye bye",
    "nothing else",
    "no more questions",
    "quit",
    "exit",
    // Chinese
    "结束",
    "结束对话",
    "结束会话",
    "就这样",
    "就这样吧",
    "没有了",
    "没有别的了",
    "没别的了",
    "再见",
    "拜拜",
    "到此为止",
    // Spanish
    "eso es todo",
    "es todo",
    "nada más",
    "nada mas",
    "hemos terminado",
    "terminar conversación",
    "terminar la conversación",
    "terminar conversacion",
    "terminar la conversacion",
    "adiós",
    "adios",
    "hasta luego",
    "fin de la conversación",
    "fin de la conversacion",
    // German
    "das ist alles",
    "das war alles",
    "das wars",
    "das wärs",
    "das war es",
    "wir sind fertig",
    "ich bin fertig",
    "gespräch beenden",
    "das gespräch beenden",
    "beende das gespräch",
    "auf wiedersehen",
    "tschüss",
    "tschüs",
    "nichts weiter",
    "sonst nichts",
];

/// Words that add nothing but manners.
const MANNERS: &[&str] = &[
    "ok",
    "okay",
    "thanks",
    "thank",
    "you",
    "please",
    "great",
    "perfect",
    "cool",
    "now",
    "for",
    "no",
    "so",
    "much",
    "very",
    "and",
    "gracias",
    "muchas",
    "vale",
    "por",
    "ahora",
    "favor",
    "danke",
    "vielen",
    "dank",
    "bitte",
    "gut",
    "super",
    "jetzt",
    "und",
    "谢谢",
    "好的",
    "好",
    "谢谢你",
];

/// Whether the words mean: end here.
pub fn is_end_intent(text: &str) -> bool {
    if text.chars().count() > 80 {
        return false;
    }
    let plain = plain(text);
    let words: Vec<&str> = plain.split(' ').collect();
    within_manners(&words).any(|core| PHRASES.contains(&core.join(" ").as_str()))
}

/// What is left of the words, with any of the polite ones at both ends dropped: a phrase may itself
/// begin or end with one.
fn within_manners<'w>(words: &'w [&'w str]) -> impl Iterator<Item = &'w [&'w str]> {
    let is_polite = |word: &&&str| MANNERS.contains(*word);
    let before = words.iter().take_while(is_polite).count();
    let behind = words.iter().rev().take_while(is_polite).count();
    (0..=before).flat_map(move |from| {
        (0..=behind).filter_map(move |less| words.get(from..words.len().checked_sub(less)?))
    })
}

/// Lower case, apostrophes dropped, other punctuation as blanks, blanks folded.
fn plain(text: &str) -> String {
    let lowered = text.to_lowercase();
    let kept = lowered.chars().filter(|c| !matches!(c, '\'' | '’'));
    let spaced: String = kept.map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::is_end_intent;

    /// By language: words that end a run, and words that only sound as if they did.
    const TABLE: &[(&str, &[&str], &[&str])] = &[
        (
            "English",
            &[
                "That's all, thanks!",
                "That’s all.",
                "ok thanks, that's all",
                "That will be all for now, thank you very much.",
                "Goodbye.",
                "bye bye",
                "we're done",
                "I'm done, thanks",
                "No more questions.",
                "Nothing else, thank you",
                "Please end the conversation.",
                "You can stop now, please",
                "END THE CHAT",
                "exit",
            ],
            &[
                "end the process",
                "end the process 4711 and tell me",
                "end the session of user 7",
                "stop the server",
                "stop the service",
                "stop here and there",
                "quit the editor",
                "exit code 3, why?",
                "kill it",
                "thanks",
                "no",
                "that's all wrong, try again",
                "is that all?? what about the logs",
                "say goodbye to the old cluster",
                "when we're done, restart it",
                "nothing else works",
                "don't stop",
            ],
        ),
        (
            "Chinese",
            &[
                "结束对话",
                "好的，再见",
                "就这样吧，谢谢",
                "没有别的了。",
                "谢谢，到此为止",
                "拜拜！",
                "结束会话",
            ],
            &[
                "终止进程",
                "结束进程",
                "结束这个任务",
                "停止服务器",
                "再见面时提醒我",
                "没有了日志怎么办",
                "谢谢",
                "好的",
                "不要结束对话",
            ],
        ),
        (
            "Spanish",
            &[
                "Eso es todo, gracias",
                "¡Adiós!",
                "Nada más, muchas gracias.",
                "Hemos terminado",
                "Terminar la conversación, por favor",
                "Hasta luego",
                "Vale, es todo por ahora",
            ],
            &[
                "termina el proceso",
                "terminar el proceso",
                "detén el servidor",
                "para el servicio",
                "eso es todo lo que falla",
                "nada más arranca, se cae",
                "gracias",
                "¿es todo culpa del disco?",
            ],
        ),
        (
            "German",
            &[
                "Das war's, danke!",
                "Das wär's",
                "Das ist alles.",
                "Wir sind fertig, vielen Dank",
                "Beende das Gespräch bitte",
                "Tschüss!",
                "Auf Wiedersehen.",
                "Sonst nichts, danke",
            ],
            &[
                "Beende den Prozess",
                "beende das Programm",
                "Stoppe den Server",
                "Halte den Dienst an",
                "Das ist alles falsch",
                "Wir sind fertig, wenn der Dienst läuft",
                "danke",
                "Nichts weiter als ein Neustart hilft",
            ],
        ),
    ];

    #[test]
    fn words_of_four_languages_end_a_run_and_near_misses_do_not() {
        let wrong = |(language, ends, misses): &(&str, &[&'static str], &[&'static str])| {
            let missed = ends.iter().filter(|text| !is_end_intent(text)).copied();
            let taken = misses.iter().filter(|text| is_end_intent(text)).copied();
            let all: Vec<&str> = missed.chain(taken).collect();
            (!all.is_empty()).then(|| format!("{language}: {all:?}"))
        };
        let wrong: Vec<String> = TABLE.iter().filter_map(wrong).collect();
        assert_eq!(wrong, Vec::<String>::new());
    }

    #[test]
    fn silence_and_long_words_are_no_end() {
        assert!(!is_end_intent(""));
        assert!(!is_end_intent("   "));
        assert!(!is_end_intent(&format!("{} bye", "ok ".repeat(40))));
    }
}
