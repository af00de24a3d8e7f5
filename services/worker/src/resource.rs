//! Taking what a call changes, and giving it back: records of the resource's own subject, each behind
//! the one before it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use definitions::template::Template;
use ports::BusError;
use ports::append::{Landed, append_surely};
use ports::journal::{Append, Fence};
use proto::call::{Hold, Holder, Start};
use proto::envelope::Envelope;
use proto::hash;
use proto::ids::{Partition, Sequence, TenantId, ThreadId, ThreadRef, ToolCallId};
use proto::record::Record;
use proto::subject::{Leaf, Subject};
use tool_core::decide::Resource;
use tool_core::resource::{Busy, Rules, give_back, take};

use crate::case::Case;

/// Resources belong to the whole fleet: what one tenant's call changes another's must not.
const FLEET: &str = "_fleet";
/// The one subject of a resource.
const SUBJECT: &str = "resource0";
/// How often a lost race is run again before the call rests.
const RACES: usize = 3;
/// About one in so many records looks for older ones to remove.
const PURGE_EACH: u64 = 16;

/// A resource that was taken.
#[derive(Debug)]
pub(crate) struct Taken {
    name: String,
    holder: Holder,
}

impl Case<'_> {
    /// Takes the resource of the call, if its tool names one.
    pub(crate) async fn take_resource(&mut self) -> Result<Resource, BusError> {
        let Some(name) = self.resource_name() else { return Ok(Resource::Ours) };
        let subject = subject(&name)?;
        for _ in 0..RACES {
            let (sequence, last) = self.newest_hold(&subject).await?;
            let holder = self.holder();
            let hold = match take(&name, last.as_ref(), &holder, self.rules()) {
                Ok(hold) => hold,
                Err(busy) => return Ok(Resource::Busy(busy)),
            };
            if self.append_hold(&subject, hold, sequence).await? {
                self.sharing.taken = Some(Taken { name, holder });
                return Ok(Resource::Ours);
            }
        }
        let words = format!("Others take `{name}` at this moment.");
        Ok(Resource::Busy(Busy { rests: None, words }))
    }

    /// Gives it back, if this call has it. One that somebody else may still be at stays taken until
    /// its time is over.
    pub(crate) async fn give_resource_back(&mut self, answered: bool) -> Result<(), BusError> {
        let taken = match self.sharing.taken.take() {
            Some(taken) => taken,
            None if answered => {
                let Some(name) = self.resource_name() else { return Ok(()) };
                Taken { name, holder: self.holder() }
            }
            None => return Ok(()),
        };
        if self.sharing.unsure.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (subject, began) = (subject(&taken.name)?, self.sharing.began.load(Ordering::Relaxed));
        for _ in 0..RACES {
            let (sequence, last) = self.newest_hold(&subject).await?;
            // An earlier delivery of the call may have begun; only this one's own word is known.
            let is_earlier = last.as_ref().is_some_and(|last| {
                last.holder.as_ref().is_some_and(|holder| holder.at != taken.holder.at)
            });
            let began = began || is_earlier;
            let free = last.and_then(|last| give_back(&last, &taken.holder, began, self.now()));
            let Some(free) = free else { return Ok(()) };
            if self.append_hold(&subject, free, sequence).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn resource_name(&self) -> Option<String> {
        let resource = self.tool.policy.resource.as_ref()?;
        Template::parse(&resource.name).fill(&self.call.arguments)
    }

    fn rules(&self) -> Rules {
        let resource = self.tool.policy.resource.as_ref();
        let cool_down = resource.map_or(0, |resource| resource.cool_down_ms);
        let rate = resource.and_then(|resource| resource.rate);
        Rules {
            cool_down: Duration::from_millis(cool_down),
            rate: rate.map(|rate| (rate.most, Duration::from_millis(rate.per_ms))),
        }
    }

    /// Every attempt of a call is over at its deadline, and killed within the grace.
    fn holder(&self) -> Holder {
        let now = self.now();
        let longest = now.after(self.tool.contract.timeout());
        Holder {
            thread: self.thread.clone(),
            tool_call_id: self.call.tool_call_id.clone(),
            tool: self.call.tool.clone(),
            worker: self.shared.config.instance.clone(),
            at: now,
            until: self.call.deadline.max(longest).after(self.shared.config.grace),
        }
    }

    async fn newest_hold(&self, subject: &Subject) -> Result<(Sequence, Option<Hold>), BusError> {
        let Some(stored) = self.shared.ports.journal.last(subject).await? else {
            return Ok((Sequence::NONE, None));
        };
        let unreadable = |why: String| BusError::Refused(format!("a resource's record: {why}"));
        let envelope =
            Envelope::decode(&stored.payload).map_err(|error| unreadable(error.to_string()))?;
        let Record::Start(Start::Held(hold)) = envelope.body else {
            return Err(unreadable(format!("it is of kind {}", envelope.body.kind())));
        };
        Ok((stored.sequence, Some(hold)))
    }

    /// Whether the record landed behind `expected`.
    async fn append_hold(
        &self,
        subject: &Subject,
        hold: Hold,
        expected: Sequence,
    ) -> Result<bool, BusError> {
        let nonce = self.shared.ports.ids.nonce();
        let record = Record::Start(Start::Held(hold));
        let envelope = Envelope::new(nonce.clone(), self.traceparent.clone(), record);
        let append = Append {
            subject: subject.clone(),
            payload: envelope.encode().into(),
            nonce,
            fence: Fence::Subject(expected),
            dedup: None,
        };
        let journal = &self.shared.ports.journal;
        match append_surely(journal.as_ref(), &append, self.shared.config.patience).await? {
            Landed::At(sequence) | Landed::Duplicate(sequence) => {
                if sequence.0.is_multiple_of(PURGE_EACH)
                    && let Err(error) = journal.purge(&subject.thread, expected).await
                {
                    tracing::debug!(%error, "older records of a resource stay");
                }
                Ok(true)
            }
            Landed::Lost { .. } => Ok(false),
        }
    }
}

/// Where the records of a resource lie.
fn subject(name: &str) -> Result<Subject, BusError> {
    let digest = hash::fingerprint(name);
    let number = digest.as_str().get(..20).and_then(|hex| u128::from_str_radix(hex, 16).ok());
    let tenant = TenantId::new(FLEET).map_err(|bad| BusError::Refused(bad.to_string()))?;
    let call = ToolCallId::new(SUBJECT).map_err(|bad| BusError::Refused(bad.to_string()))?;
    let thread = ThreadId::from_parts(0, number.unwrap_or(0));
    let thread = ThreadRef { partition: Partition(0), tenant, thread };
    Ok(Subject::new(thread, Leaf::Start(call)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_resource_has_a_subject_of_its_own() {
        let one = subject("service/web").unwrap();
        assert_eq!(one, subject("service/web").unwrap());
        assert_ne!(one, subject("service/db").unwrap());
        assert_eq!(one.to_string().parse(), Ok(one));
    }
}
