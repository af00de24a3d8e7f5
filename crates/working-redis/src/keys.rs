//! What lies where. The part in braces is the hash tag: equal tags share a cluster slot.

use ports::reads::ReadKey;
use proto::ids::{Partition, ThreadRef, ToolCallId, ToolName};

/// Names keys below one prefix.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    fn of_thread(&self, thread: &ThreadRef, what: &str) -> String {
        format!("{}:{{{thread}}}:{what}", self.prefix)
    }

    fn of_call(&self, thread: &ThreadRef, what: &str, call: &ToolCallId) -> String {
        format!("{}:{{{thread}}}:{what}:{call}", self.prefix)
    }

    pub(crate) fn lease(&self, thread: &ThreadRef, call: &ToolCallId) -> String {
        self.of_call(thread, "lease", call)
    }

    pub(crate) fn done(&self, thread: &ThreadRef, call: &ToolCallId) -> String {
        self.of_call(thread, "done", call)
    }

    pub(crate) fn cancelled(&self, thread: &ThreadRef, call: &ToolCallId) -> String {
        self.of_call(thread, "cancelled", call)
    }

    pub(crate) fn snapshot(&self, thread: &ThreadRef) -> String {
        self.of_thread(thread, "snapshot")
    }

    pub(crate) fn text(&self, thread: &ThreadRef) -> String {
        self.of_thread(thread, "text")
    }

    pub(crate) fn samples(&self, tool: &ToolName) -> String {
        format!("{}:{{tool/{tool}}}:samples", self.prefix)
    }

    /// Numbers a tool's samples, so that two of one moment are two.
    pub(crate) fn sample_count(&self, tool: &ToolName) -> String {
        format!("{}:{{tool/{tool}}}:count", self.prefix)
    }

    pub(crate) fn probe(&self, tool: &ToolName) -> String {
        format!("{}:{{tool/{tool}}}:probe", self.prefix)
    }

    pub(crate) fn read(&self, key: &ReadKey) -> String {
        format!("{}:{{read/{}}}:value", self.prefix, key.0)
    }

    pub(crate) fn read_lease(&self, key: &ReadKey) -> String {
        format!("{}:{{read/{}}}:lease", self.prefix, key.0)
    }

    pub(crate) fn places(&self, tool: &ToolName) -> String {
        format!("{}:{{tool/{tool}}}:places", self.prefix)
    }

    pub(crate) fn cell(&self, name: &str) -> String {
        format!("{}:{{cell/{name}}}", self.prefix)
    }

    pub(crate) fn active(&self) -> String {
        format!("{}:active", self.prefix)
    }
}

/// The thread that [`ThreadRef`]'s text names.
pub(crate) fn thread_of(text: &str) -> Option<ThreadRef> {
    let mut parts = text.splitn(3, '/');
    Some(ThreadRef {
        partition: Partition(parts.next()?.parse().ok()?),
        tenant: parts.next()?.parse().ok()?,
        thread: parts.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use proto::ids::{TenantId, ThreadId};

    use super::*;

    #[test]
    fn a_threads_text_names_it() {
        let thread = ThreadRef {
            partition: Partition(7),
            tenant: TenantId::new("acme").unwrap(),
            thread: ThreadId::from_parts(1, 2),
        };
        assert_eq!(thread_of(&thread.to_string()), Some(thread));
        for strange in ["", "7/acme", "x/acme/01J00000000000000000000000", "7/acme/short"] {
            assert_eq!(thread_of(strange), None, "{strange}");
        }
    }
}
