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
    if PHRASES.contains(&plain.as_str()) {
        return true;
    }
    let without = without_manners(&plain);
    !without.is_empty() && PHRASES.contains(&without.as_str())
}

/// Lower case, apostrophes dropped, other punctuation as blanks, blanks folded.
fn plain(text: &str) -> String {
    let lowered = text.to_lowercase();
    let kept = lowered.chars().filter(|c| !matches!(c, '\'' | '’'));
    let spaced: String = kept.map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Drops words of politeness at both ends.
fn without_manners(plain: &str) -> String {
    let mut words: Vec<&str> = plain.split(' ').collect();
    while words.first().is_some_and(|word| MANNERS.contains(word)) {
        words.remove(0);
    }
    while words.last().is_some_and(|word| MANNERS.contains(word)) {
        words.pop();
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::is_end_intent;

    #[test]
    fn phrases_of_several_languages_end_a_run() {
        for text in [
            "That's all, thanks!",
            "ok thanks, that's all",
            "Goodbye.",
            "we're done",
            "结束对话",
            "好的，再见",
            "Eso es todo, gracias",
            "Das war's, danke!",
            "Das ist alles.",
            "exit",
        ] {
            assert!(is_end_intent(text), "{text}");
        }
    }

    #[test]
    fn tasks_that_sound_like_an_end_do_not() {
        for text in [
            "end the process",
            "end the process 4711 and tell me",
            "stop the service",
            "thanks",
            "that's all wrong, try again",
            "quit the editor",
            "结束进程",
            "termina el proceso",
            "Beende den Prozess",
            "is that all?? what about the logs",
            "",
            "   ",
        ] {
            assert!(!is_end_intent(text), "{text}");
        }
    }
}
