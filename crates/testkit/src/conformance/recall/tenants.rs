//! Two tenants whose fragments lie at the same places: every call of each, and nothing of the other.

use memory_core::fragment::FragmentId;
use ports::recall::{Access, Edition, Filter, Kept, Query, Recall, Scope, Size, told_id};

use super::super::kit::{holds, same};
use super::super::{Outcome, RecallWorld};
use super::kit::{acme, ask, globex, id, now, of, passage, said, space, stated, thread, vector};

fn edition() -> Edition {
    Edition { collection: "handbook".to_owned(), version: "1".to_owned() }
}

/// The same words, subject, thread, document and vector; only `word` tells whose it is.
fn all(access: &Access, word: &str) -> Vec<Kept> {
    let mut told = said(1, 0, &format!("canary {word}"));
    told.fragment.id = told_id(access, "a key");
    let all = vec![
        said(1, 0, &format!("canary {word}")).with_vector(vector(1.0, 0.0)),
        stated(1, 1, "anna", "city", word),
        passage(&edition(), 0, &format!("canary {word}")),
        told,
    ];
    all.into_iter().map(|kept| of(access, kept)).collect()
}

/// Whose words an answer has.
fn only(what: &str, word: &str, answer: &[Kept]) -> Outcome {
    let strange = answer.iter().find(|kept| !kept.fragment.text.contains(word));
    holds(&format!("{what} answers with something"), !answer.is_empty())?;
    holds(&format!("{what} answers with nothing of the other: {strange:?}"), strange.is_none())
}

async fn look(memory: &dyn Recall, access: &Access, word: &str) -> Outcome {
    let filter = Filter { all_editions: true, ..Filter::default() };
    for vector in [None, Some(vector(1.0, 0.0).into())] {
        let query = Query { vector, k: 100, filter: filter.clone(), ..ask("canary anna city") };
        let hits = memory.query(access, &query).await?;
        only("query", word, &hits.into_iter().map(|hit| hit.kept).collect::<Vec<_>>())?;
    }
    // The other's ids, and one's own.
    let both = [acme(), globex()].map(|access| {
        all(&access, "").into_iter().map(|kept| kept.fragment.id).collect::<Vec<FragmentId>>()
    });
    let ids: Vec<FragmentId> = both.into_iter().flatten().collect();
    let got = memory.get(access, &ids).await?;
    only("get", word, &got)?;
    same("get answers with one's own alone", got.len(), 4)?;
    only("list", word, &memory.list(access, &filter, None, 100).await?)?;
    for id in &ids {
        let beside = memory.neighbours(access, id, 5).await?;
        holds("neighbours", beside.iter().all(|kept| kept.fragment.text.contains(word)))?;
    }
    same("size", memory.size(access).await?.fragments, 4)
}

/// Queries, ids, listings, neighbours, supersession, forgetting, tombstones.
pub(super) async fn no_call_reaches_another_tenant(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    memory.settle(Some(space())).await?;
    memory.put(&acme(), all(&acme(), "apple")).await?;
    memory.put(&globex(), all(&globex(), "grape")).await?;
    look(&*memory, &acme(), "apple").await?;
    look(&*memory, &globex(), "grape").await?;
    // Globex changes and forgets what lies at the places of acme.
    let theirs = [id(1, 0), id(1, 1)];
    memory.supersede(&globex(), &theirs, &id(1, 1), now()).await?;
    forget_all(&*memory).await?;
    same("what globex has", memory.size(&globex()).await?, Size::default())?;
    same("the tombstones of acme", memory.tombstones(&acme()).await?, vec![])?;
    same("the editions of globex", memory.editions(&globex()).await?, vec![])?;
    same("and of acme", memory.editions(&acme()).await?, vec![edition()])?;
    same("acme still writes", memory.put(&acme(), all(&acme(), "apple")).await?.kept, 4)
}

/// Globex forgets by every scope; acme has all of its own after each.
async fn forget_all(memory: &dyn Recall) -> Outcome {
    let scopes = [
        Scope::Fragment { id: id(1, 0) },
        Scope::Thread { thread: thread(1) },
        Scope::subject("anna"),
        Scope::Edition { edition: edition() },
        Scope::Tenant,
    ];
    for scope in scopes {
        memory.forget(&globex(), &scope, now()).await?;
        look(memory, &acme(), "apple").await?;
    }
    Ok(())
}
