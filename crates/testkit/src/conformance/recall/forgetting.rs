//! What is forgotten is gone, and stays away.

use ports::recall::{Scope, Size};
use proto::time::Timestamp;

use super::super::kit::same;
use super::super::{Outcome, RecallWorld};
use super::kit::{acme, found, globex, id, long_ago, now, of, put, said, stated, thread};

/// Other threads stay.
pub(super) async fn forgetting_a_thread_removes_it_alone(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    put(&*memory, vec![said(1, 0, "canary"), said(1, 1, "canary"), said(2, 0, "canary")]).await?;
    let scope = Scope::Thread { thread: thread(1) };
    same("how many went", memory.forget(&acme(), &scope, now()).await?, 2)?;
    same("what is found", found(&*memory, "canary").await?, vec![id(2, 0)])?;
    same("by id", memory.get(&acme(), &[id(1, 0)]).await?.len(), 0)?;
    let scopes: Vec<Scope> =
        memory.tombstones(&acme()).await?.into_iter().map(|stone| stone.scope).collect();
    same("the tombstone", scopes, vec![scope])
}

/// Whatever the case of its name.
pub(super) async fn forgetting_a_subject_removes_what_is_about_it(
    world: &dyn RecallWorld,
) -> Outcome {
    let memory = world.peer().await;
    let all = vec![
        stated(1, 0, "Anna Berg", "city", "Berlin"),
        stated(2, 0, "Bert", "city", "Berlin"),
        said(3, 0, "Berlin"),
    ];
    put(&*memory, all).await?;
    same("one went", memory.forget(&acme(), &Scope::subject("anna  BERG"), now()).await?, 1)?;
    let mut left = found(&*memory, "Berlin").await?;
    left.sort();
    same("what is left", left, vec![id(2, 0), id(3, 0)])
}

/// The narrowest and the widest.
pub(super) async fn forgetting_a_fragment_or_all_of_a_tenant(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    put(&*memory, vec![said(1, 0, "canary"), said(1, 1, "canary"), said(2, 0, "canary")]).await?;
    memory.put(&globex(), vec![of(&globex(), said(1, 0, "canary"))]).await?;
    memory.forget(&acme(), &Scope::Fragment { id: id(1, 0) }, now()).await?;
    let mut left = found(&*memory, "canary").await?;
    left.sort();
    same("after one", left, vec![id(1, 1), id(2, 0)])?;
    same("all", memory.forget(&acme(), &Scope::Tenant, now()).await?, 2)?;
    same("nothing is left", memory.size(&acme()).await?, Size::default())?;
    same("of the other tenant", memory.size(&globex()).await?, Size { fragments: 1, vectors: 0 })
}

/// It read before it was forgotten, and writes afterwards.
pub(super) async fn a_late_writer_does_not_bring_back_what_was_forgotten(
    world: &dyn RecallWorld,
) -> Outcome {
    let (forgets, writes) = (world.peer().await, world.peer().await);
    let late = said(1, 0, "canary");
    forgets.forget(&acme(), &Scope::Thread { thread: thread(1) }, late.fragment.at).await?;
    forgets.forget(&acme(), &Scope::subject("anna"), now()).await?;
    let about = stated(2, 0, "anna", "city", "Berlin");
    let answer = writes.put(&acme(), vec![late, about, said(3, 0, "canary")]).await?;
    same("dropped", answer.forgotten, 2)?;
    same("kept", answer.kept, 1)?;
    same("what is found", found(&*writes, "canary berlin").await?, vec![id(3, 0)])
}

/// A tombstone covers what was before it.
pub(super) async fn what_happens_after_forgetting_is_kept(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    memory.forget(&acme(), &Scope::Thread { thread: thread(1) }, long_ago()).await?;
    same("kept", put(&*memory, vec![said(1, 0, "canary")]).await?.kept, 1)?;
    // Forgetting again at an earlier time takes nothing back.
    memory.forget(&acme(), &Scope::Thread { thread: thread(1) }, Timestamp(1)).await?;
    let stones = memory.tombstones(&acme()).await?;
    same("the time", stones.first().map(|stone| stone.at), Some(long_ago()))
}
