//! Facts that a text states outright, by rules that are narrow on purpose: a fact that was never said
//! is worse than one that was missed.

use super::Stated;

/// Sentences that are looked at.
const SENTENCES: usize = 64;
/// Words of a subject or an attribute.
const NAME: usize = 4;
/// Words of a value.
const VALUE: usize = 12;

const IS: [&str; 16] = [
    " is now ",
    " are now ",
    " is ",
    " are ",
    " was changed to ",
    " ist jetzt ",
    " ist ",
    " sind ",
    " es ahora ",
    " es ",
    " son ",
    " está en ",
    " est maintenant ",
    " est ",
    " sont ",
    " = ",
];
const MINE: [&str; 16] = [
    "my ", "our ", "mein ", "meine ", "unser ", "unsere ", "mi ", "mis ", "nuestro ", "nuestra ",
    "mon ", "ma ", "mes ", "notre ", "nos ", "your ",
];
const OF: [&str; 7] = [" of the ", " of ", " von ", " des ", " del ", " de la ", " de "];
const THE: [&str; 9] = ["the ", "der ", "die ", "das ", "el ", "la ", "le ", "l'", "les "];

/// The facts of a text: `the port of web-03 is 8080`, `Orion's owner is Ada`, `my name is Kim`, and the
/// same in German, Spanish and French.
pub fn stated(text: &str) -> Vec<Stated> {
    let sentences = text.split_inclusive(['.', '!', '?', '\n', ';']).take(SENTENCES);
    sentences.filter(|one| !one.trim_end().ends_with('?')).filter_map(of_sentence).collect()
}

fn of_sentence(sentence: &str) -> Option<Stated> {
    let sentence = sentence.trim().trim_end_matches(['.', '!', ';', ',']);
    let bare = ["No, ", "Nein, ", "Actually, ", "Non, ", "Correction: "];
    let sentence = bare.iter().find_map(|start| sentence.strip_prefix(start)).unwrap_or(sentence);
    let (left, value) = IS.iter().find_map(|is| sentence.split_once(is))?;
    let (subject, attribute) = named(left.trim())?;
    let value = value.trim();
    let is_fit = |text: &str, most: usize| (1..=most).contains(&text.split_whitespace().count());
    let fits = is_fit(&subject, NAME) && is_fit(&attribute, NAME) && is_fit(value, VALUE);
    fits.then(|| Stated { subject, attribute, value: value.to_owned() })
}

fn named(left: &str) -> Option<(String, String)> {
    let lower = left.to_lowercase();
    let after = |starts: &[&str]| {
        starts
            .iter()
            .find(|start| lower.starts_with(**start))
            .and_then(|start| left.get(start.len()..))
    };
    if let Some(attribute) = after(&MINE) {
        return Some(("user".to_owned(), attribute.to_owned()));
    }
    if let Some((subject, attribute)) = left.split_once("'s ").or_else(|| left.split_once("’s "))
    {
        return Some((without_article(subject), attribute.to_owned()));
    }
    let attribute = after(&THE)?;
    let (attribute, subject) = OF.iter().find_map(|of| attribute.split_once(of))?;
    Some((without_article(subject), attribute.to_owned()))
}

fn without_article(name: &str) -> String {
    let lower = name.to_lowercase();
    let article = THE.iter().find(|the| lower.starts_with(**the)).map_or(0, |the| the.len());
    name.get(article..).unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_what_is_said_outright() {
        let cases = [
            ("The port of web-03 is 8080.", Some(("web-03", "port", "8080"))),
            ("Orion's owner is Ada Lovelace.", Some(("Orion", "owner", "Ada Lovelace"))),
            ("My name is Kim", Some(("user", "name", "Kim"))),
            ("No, the port of web-03 is now 9090.", Some(("web-03", "port", "9090"))),
            ("Mein Name ist Kim.", Some(("user", "Name", "Kim"))),
            ("El puerto de Orion es 8080.", Some(("Orion", "puerto", "8080"))),
            ("Is the port of web-03 free?", None),
            ("It is raining.", None),
            ("This is the best of all worlds", None),
        ];
        for (text, expected) in cases {
            let found = stated(text).pop();
            let expected = expected.map(|(subject, attribute, value)| Stated {
                subject: subject.into(),
                attribute: attribute.into(),
                value: value.into(),
            });
            assert_eq!(found, expected, "{text}");
        }
    }
}
