//! A Rust file as the rules see it: its functions, its tokens, and which lines are tests.

use std::ops::RangeInclusive;
use std::str::FromStr as _;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Item, Meta, Signature};

/// A parsed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Lines of items under `#[cfg(test)]` and of test functions.
    pub tests: Vec<RangeInclusive<usize>>,
    /// Functions with a body, outermost only.
    pub functions: Vec<Function>,
    /// Every token in order, with its line; comments are gone.
    pub tokens: Vec<Token>,
}

/// A function with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Line of the opening brace.
    pub open: usize,
    /// Line of the closing brace.
    pub close: usize,
    /// True if it carries `#[expect(clippy::too_many_lines, …)]`.
    pub is_excused: bool,
}

/// One token: an identifier, one punctuation character, a bracket, a literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// As written.
    pub text: String,
    /// Where.
    pub line: usize,
}

impl Source {
    /// Parses a file.
    pub fn parse(text: &str) -> syn::Result<Self> {
        let file = syn::parse_file(text)?;
        let mut seen = Seen::default();
        seen.visit_file(&file);
        // A shebang line is no token.
        let code =
            file.shebang.as_ref().map_or(text, |line| text.trim_start_matches(line.as_str()));
        let mut tokens = Vec::new();
        flatten(TokenStream::from_str(code)?, &mut tokens);
        Ok(Self { tests: seen.tests, functions: seen.functions, tokens })
    }

    /// True if the line belongs to a test.
    pub fn is_test(&self, line: usize) -> bool {
        self.tests.iter().any(|lines| lines.contains(&line))
    }
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = brackets(group.delimiter());
                tokens.push(token(open, group.span_open()));
                flatten(group.stream(), tokens);
                tokens.push(token(close, group.span_close()));
            }
            TokenTree::Ident(ident) => tokens.push(token(&ident.to_string(), ident.span())),
            TokenTree::Punct(punct) => {
                tokens.push(token(&punct.as_char().to_string(), punct.span()));
            }
            TokenTree::Literal(literal) => {
                tokens.push(token(&literal.to_string(), literal.span()));
            }
        }
    }
}

fn brackets(delimiter: Delimiter) -> (&'static str, &'static str) {
    match delimiter {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    }
}

fn token(text: &str, span: Span) -> Token {
    Token { text: text.to_owned(), line: span.start().line }
}

#[derive(Default)]
struct Seen {
    tests: Vec<RangeInclusive<usize>>,
    functions: Vec<Function>,
}

impl Seen {
    fn function(&mut self, attributes: &[Attribute], signature: &Signature, body: &Block) {
        self.functions.push(Function {
            name: signature.ident.to_string(),
            open: body.brace_token.span.open().start().line,
            close: body.brace_token.span.close().start().line,
            is_excused: attributes.iter().any(excuses_length),
        });
    }
}

impl<'ast> Visit<'ast> for Seen {
    #[expect(clippy::wildcard_enum_match_arm, reason = "syn may add kinds of items")]
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, last) = match item {
            Item::Fn(item) => (&item.attrs, item.block.brace_token.span.close()),
            Item::Impl(item) => (&item.attrs, item.brace_token.span.close()),
            Item::Mod(item) => {
                let brace = item.content.as_ref().map(|(brace, _)| brace.span.close());
                (&item.attrs, brace.unwrap_or_else(|| item.ident.span()))
            }
            _ => return visit::visit_item(self, item),
        };
        match attributes.iter().find(|attribute| marks_test(attribute)) {
            Some(mark) => self.tests.push(mark.pound_token.span.start().line..=last.end().line),
            None => visit::visit_item(self, item),
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(&item.attrs, &item.sig, body);
        }
    }
}

/// `#[cfg(test)]`, `#[test]`, `#[tokio::test]`.
fn marks_test(attribute: &Attribute) -> bool {
    let path = attribute.path();
    let ends_in_test = path.segments.last().is_some_and(|segment| segment.ident == "test");
    ends_in_test || (path.is_ident("cfg") && words(&attribute.meta) == ["test"])
}

fn excuses_length(attribute: &Attribute) -> bool {
    let lint = "too_many_lines".to_owned();
    attribute.path().is_ident("expect") && words(&attribute.meta).contains(&lint)
}

/// The identifiers inside an attribute's parentheses.
fn words(meta: &Meta) -> Vec<String> {
    let Meta::List(list) = meta else { return Vec::new() };
    let idents = list.tokens.clone().into_iter().filter_map(|tree| match tree {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    });
    idents.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
fn long() {
    x();
}

#[cfg(test)]
mod tests {
    fn inside() {}
}

impl A {
    #[expect(clippy::too_many_lines, reason = \"a table\")]
    fn table(&self) {
    }
}
";

    #[test]
    fn functions_and_test_lines_are_found() {
        let source = Source::parse(TEXT).unwrap();
        let function = |name: &str, open, close, is_excused| Function {
            name: name.to_owned(),
            open,
            close,
            is_excused,
        };
        assert_eq!(source.tests, [5..=8]);
        assert_eq!(
            source.functions,
            [function("long", 1, 3, false), function("table", 12, 13, true)]
        );
    }

    #[test]
    fn tokens_know_their_line_and_comments_are_none() {
        let source = Source::parse("// async\nfn a() {\n    b\n}\n").unwrap();
        let tokens: Vec<_> = source.tokens.iter().map(|t| (t.text.as_str(), t.line)).collect();
        let expected = [("fn", 2), ("a", 2), ("(", 2), (")", 2), ("{", 2), ("b", 3), ("}", 4)];
        assert_eq!(tokens, expected);
    }
}
