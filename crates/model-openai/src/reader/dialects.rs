//! The marks that models and servers put around calls in text.

/// Marks that a call may follow.
pub(crate) const OPENERS: [&str; 9] = [
    "<tool_call>",
    "<function=",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<|tool_call_begin|>",
    "<|tool_calls_section_begin|>",
    "<｜tool▁calls▁begin｜>",
    "functools[",
    "<|channel|>commentary to=",
];
/// The same where the markers themselves were stripped: only at the very start of a reply.
pub(crate) const BARE_OPENER: &str = "commentary to=";
/// Marks that may follow a call and mean nothing.
pub(crate) const CLOSERS: [&str; 11] = [
    "</tool_call>",
    "</function>",
    "<|tool_call_end|>",
    "<|tool_calls_section_end|>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|call|>",
    "```",
    "]",
];
/// Openers of a further call inside a section.
pub(crate) const INNER: [&str; 2] = ["<|tool_call_begin|>", "<｜tool▁call▁begin｜>"];
/// Languages of a fence that may be a call as a whole.
pub(crate) const FENCES: [&str; 4] = ["", "json", "tool_call", "tool_calls"];
