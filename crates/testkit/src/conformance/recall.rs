//! Rules of [`ports::recall::Recall`].

mod forgetting;
mod kit;
mod tenants;

use memory_core::fragment::{FragmentId, Origin};
use memory_core::kind::Kind;
use ports::BusError;
use ports::recall::{
    Edition, Filter, Kept, LONGEST_TEXT, MOST_AT_ONCE, Query, Scope, Size, Space, document_thread,
};
use proto::ids::TenantId;
use proto::time::Timestamp;

use self::forgetting::{
    a_late_writer_does_not_bring_back_what_was_forgotten, forgetting_a_fragment_or_all_of_a_tenant,
    forgetting_a_subject_removes_what_is_about_it, forgetting_a_thread_removes_it_alone,
    what_happens_after_forgetting_is_kept,
};
use self::kit::{
    acme, ask, at_turn, found, globex, id, long_ago, near, passage, put, said, shown, space,
    stated, thread, vector,
};
use self::tenants::no_call_reaches_another_tenant;
use super::kit::{holds, same};
use super::{Broken, Outcome, RecallWorld, suite};

suite!(RecallWorld, RecallHarness, run_recall:
    a_fragment_comes_back_as_it_was_put,
    putting_again_replaces,
    what_was_put_is_seen_by_every_process,
    words_find_what_has_them_and_nothing_else,
    a_rare_word_counts_more_than_a_usual_one,
    a_vector_finds_the_nearest,
    what_both_lists_have_comes_before_what_one_has,
    importance_lifts_among_equals,
    a_turn_lifts_the_turns_beside_it,
    something_else_comes_before_more_of_the_same,
    age_counts_where_it_is_asked_for,
    no_more_come_than_were_asked_for,
    only_what_fits_the_filter_is_found,
    what_was_superseded_is_hidden_and_found_as_of_before,
    what_is_put_again_stays_superseded,
    neighbours_are_the_turns_around,
    a_listing_is_in_order_and_goes_on,
    words_of_other_tenants_count_for_nothing,
    no_call_reaches_another_tenant,
    a_fragment_of_another_tenant_is_refused,
    forgetting_a_thread_removes_it_alone,
    forgetting_a_subject_removes_what_is_about_it,
    forgetting_a_fragment_or_all_of_a_tenant,
    a_late_writer_does_not_bring_back_what_was_forgotten,
    what_happens_after_forgetting_is_kept,
    passages_are_found_in_the_editions_that_are_named,
    a_withdrawn_edition_is_served_no_more,
    a_cursor_is_kept_by_its_reader,
    vectors_of_another_space_are_refused,
    another_space_takes_the_vectors_away_and_leaves_the_words,
    what_is_too_large_is_refused,
    memory_survives_a_reopen,
);

/// Words, facts, explanation, vector: all of it.
pub async fn a_fragment_comes_back_as_it_was_put(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    memory.settle(Some(space())).await?;
    let mut kept = stated(1, 0, "anna", "city", "Berlin").with_vector(vector(1.0, 0.0));
    kept.fragment.importance = 0.25;
    kept.fragment.origin = Origin::Tool { tool: "crm".to_owned() };
    put(&*memory, vec![kept.clone()]).await?;
    let back = memory.get(&acme(), &[id(1, 0), id(9, 9)]).await?;
    let [one] = back.as_slice() else { return same("how many come back", back.len(), 1) };
    same("the fragment", &one.fragment, &kept.fragment)?;
    let close = one.vector.as_deref().map(|v| near(v, &[1.0, 0.0, 0.0]));
    same("the vector, as exactly as the store holds it", close, Some(true))
}

/// The same id is the same fragment.
pub async fn putting_again_replaces(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    put(&*memory, vec![said(1, 0, "the first wording"), said(1, 1, "another")]).await?;
    put(&*memory, vec![said(1, 0, "the second")]).await?;
    same("how many there are", memory.size(&acme()).await?, Size { fragments: 2, vectors: 0 })?;
    same("the earlier words", found(&*memory, "wording").await?, vec![])?;
    same("the later words", found(&*memory, "second").await?, vec![id(1, 0)])
}

/// A call sees what was answered before it began, whoever wrote it.
pub async fn what_was_put_is_seen_by_every_process(world: &dyn RecallWorld) -> Outcome {
    let (one, other) = (world.peer().await, world.peer().await);
    put(&*one, vec![said(1, 0, "a canary sang")]).await?;
    same("the other process", found(&*other, "canary").await?, vec![id(1, 0)])?;
    one.forget(&acme(), &Scope::Thread { thread: thread(1) }, long_ago()).await?;
    same("after it was forgotten", found(&*other, "canary").await?, vec![])
}

/// Whatever their case and ending.
pub async fn words_find_what_has_them_and_nothing_else(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    let texts = [
        (1, "Restarting the server helped."),
        (2, "The invoice was paid."),
        (3, "東京に住んでいます"),
    ];
    put(&*memory, texts.map(|(n, text)| said(n, 0, text)).to_vec()).await?;
    same("another form", found(&*memory, "restarted SERVERS").await?, vec![id(1, 0)])?;
    same("no blanks between words", found(&*memory, "東京").await?, vec![id(3, 0)])?;
    same("nothing to look for", found(&*memory, "the of and").await?, vec![])?;
    same("quotes and signs", found(&*memory, "\" OR * NEAR( -").await?, vec![])?;
    same("no word of it", found(&*memory, "giraffe").await?, vec![])
}

/// Inverse document frequency.
pub async fn a_rare_word_counts_more_than_a_usual_one(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    let mut all: Vec<Kept> = (10..20).map(|n| said(n, 0, "deploy went through")).collect();
    all.extend([said(1, 0, "deploy"), said(2, 0, "zebra")]);
    put(&*memory, all).await?;
    let best = found(&*memory, "deploy zebra").await?;
    same("the first", best.first(), Some(&id(2, 0)))
}

/// By cosine, so its length does not count.
pub async fn a_vector_finds_the_nearest(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    memory.settle(Some(space())).await?;
    let vectors = [(1, vector(1.0, 0.1)), (2, vector(0.5, 0.8)), (3, vector(-1.0, 0.0))];
    let all = vectors.map(|(n, v)| said(n, 0, &format!("word{n}")).with_vector(v));
    put(&*memory, all.to_vec()).await?;
    let query = Query { vector: Some(vector(7.0, 0.0).into()), ..ask("nothing") };
    same("the order", shown(&memory.query(&acme(), &query).await?), vec![id(1, 0), id(2, 0)])
}

/// Reciprocal rank fusion.
pub async fn what_both_lists_have_comes_before_what_one_has(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    memory.settle(Some(space())).await?;
    let all = vec![
        said(1, 0, "canary").with_vector(vector(-1.0, 0.0)),
        said(2, 0, "canary and some other birds of the wood").with_vector(vector(0.9, 0.1)),
        said(3, 0, "nothing alike").with_vector(vector(1.0, 0.0)),
    ];
    put(&*memory, all).await?;
    let query = Query { vector: Some(vector(1.0, 0.0).into()), ..ask("canary") };
    let hits = memory.query(&acme(), &query).await?;
    same("the order", shown(&hits), vec![id(2, 0), id(1, 0), id(3, 0)])?;
    let base = hits.first().map(|hit| hit.ranked.base).unwrap_or_default();
    holds("places count 1 / (10 + place), from 1", (base - 2.0 / 12.0).abs() < 1e-4)
}

/// A prior, not a gate.
pub async fn importance_lifts_among_equals(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    let mut important = said(2, 0, "canary canary of the mine is yellow");
    important.fragment.importance = 0.9;
    important.fragment.at = long_ago();
    put(&*memory, vec![said(1, 0, "canary canary"), important, said(3, 0, "canary of a mine")])
        .await?;
    let order = found(&*memory, "canary").await?;
    same("the first", order.first(), Some(&id(2, 0)))?;
    same("nothing is left out", order.len(), 3)
}

/// By a part of its score, also where they have no word of it.
pub async fn a_turn_lifts_the_turns_beside_it(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    let all = vec![
        at_turn(1, 4, "what is the port"),
        at_turn(1, 5, "8080"),
        at_turn(1, 7, "far away"),
        at_turn(2, 5, "of another thread"),
    ];
    put(&*memory, all).await?;
    let hits = memory.query(&acme(), &ask("port")).await?;
    let ids: Vec<(_, u64)> =
        hits.iter().map(|hit| (hit.ranked.id.thread, hit.ranked.id.turn)).collect();
    same("what is found", ids, vec![(thread(1), 4), (thread(1), 5)])?;
    let scores: Vec<f64> = hits.iter().map(|hit| hit.ranked.score).collect();
    let [own, lent] = scores.as_slice() else { return same("hits", scores.len(), 2) };
    holds("the neighbour has three tenths", (lent / own - 0.3).abs() < 0.01)
}

/// Maximal marginal relevance.
pub async fn something_else_comes_before_more_of_the_same(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    let all = vec![
        said(1, 0, "deploy failed"),
        said(2, 0, "deploy failed failed"),
        said(3, 0, "deploy needs coffee, milk and sugar in the kitchen"),
    ];
    put(&*memory, all).await?;
    let mut query = Query { k: 2, ..ask("deploy failed") };
    let plain = shown(&memory.query(&acme(), &query).await?);
    query.weights.mmr = Some(0.5);
    let diverse = shown(&memory.query(&acme(), &query).await?);
    holds("without it the two that are alike come", !plain.contains(&id(3, 0)))?;
    holds("with it the other one comes", diverse.contains(&id(3, 0)))
}

/// Half after each half-life.
pub async fn age_counts_where_it_is_asked_for(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    let mut old = said(1, 0, "canary canary");
    old.fragment.at = long_ago();
    put(&*memory, vec![old, said(2, 0, "canary in a coal mine")]).await?;
    let mut query = ask("canary");
    let plain = shown(&memory.query(&acme(), &query).await?);
    query.weights.half_life = Some(std::time::Duration::from_hours(24));
    let aged = shown(&memory.query(&acme(), &query).await?);
    same("without", plain, vec![id(1, 0), id(2, 0)])?;
    same("with", aged, vec![id(2, 0), id(1, 0)])
}

/// Not even where the neighbours of one turn are many.
pub async fn no_more_come_than_were_asked_for(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    put(&*memory, (1..=20).map(|n| said(n, 0, "canary")).collect()).await?;
    let query = Query { k: 3, ..ask("canary") };
    same("three", memory.query(&acme(), &query).await?.len(), 3)?;
    let query = Query { k: 0, ..ask("canary") };
    same("none", memory.query(&acme(), &query).await?.len(), 0)
}

/// Kinds, one thread, all but one thread.
pub async fn only_what_fits_the_filter_is_found(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    let mut decided = said(2, 0, "canary it is");
    decided.fragment.kind = Kind::Decision;
    put(&*memory, vec![said(1, 0, "canary"), decided, said(3, 0, "canary")]).await?;
    let with = async |filter: Filter| {
        let hits = memory.query(&acme(), &Query { filter, ..ask("canary") }).await?;
        let mut ids = shown(&hits);
        ids.sort();
        Ok::<_, Broken>(ids)
    };
    let kinds = Filter { kinds: [Kind::Decision].into(), ..Filter::default() };
    same("a kind", with(kinds).await?, vec![id(2, 0)])?;
    let only = Filter { thread: Some(thread(1)), ..Filter::default() };
    same("a thread", with(only).await?, vec![id(1, 0)])?;
    let without = Filter { without: Some(thread(1)), ..Filter::default() };
    same("all but a thread", with(without).await?, vec![id(2, 0), id(3, 0)])
}

/// A fact that was replaced is history, not gone.
pub async fn what_was_superseded_is_hidden_and_found_as_of_before(
    world: &dyn RecallWorld,
) -> Outcome {
    let memory = world.peer().await;
    let mut old = stated(1, 0, "anna", "city", "Berlin");
    old.fragment.at = Timestamp(1_000_000);
    let mut new = stated(1, 1, "anna", "city", "Paris");
    new.fragment.at = Timestamp(2_000_000);
    put(&*memory, vec![old, new]).await?;
    memory.supersede(&acme(), &[id(1, 0), id(8, 8)], &id(1, 1), Timestamp(2_000_000)).await?;
    same("what holds", found(&*memory, "anna city").await?, vec![id(1, 1)])?;
    let filter = Filter { as_of: Some(Timestamp(1_500_000)), ..Filter::default() };
    let hits = memory.query(&acme(), &Query { filter, ..ask("anna city") }).await?;
    same("what held before", shown(&hits), vec![id(1, 0)])?;
    let back = memory.get(&acme(), &[id(1, 0)]).await?;
    let by = back.first().and_then(|kept| kept.superseded_by.clone());
    same("what took its place", by, Some(id(1, 1)))
}

/// A replay does not make an old fact true again.
pub async fn what_is_put_again_stays_superseded(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    let old = stated(1, 0, "anna", "city", "Berlin");
    put(&*memory, vec![old.clone(), stated(1, 1, "anna", "city", "Paris")]).await?;
    memory.supersede(&acme(), &[id(1, 0)], &id(1, 1), old.fragment.at).await?;
    put(&*memory, vec![old]).await?;
    same("what holds", found(&*memory, "anna").await?, vec![id(1, 1)])
}

/// In order, without the one in the middle.
pub async fn neighbours_are_the_turns_around(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    let mut all: Vec<Kept> = (1..=6).map(|turn| at_turn(1, turn, "a word")).collect();
    all.push(at_turn(2, 3, "of another thread"));
    put(&*memory, all).await?;
    let middle = FragmentId { turn: 3, ..id(1, 0) };
    let around = memory.neighbours(&acme(), &middle, 2).await?;
    let turns: Vec<(_, u64)> =
        around.iter().map(|kept| (kept.fragment.id.thread, kept.fragment.id.turn)).collect();
    same("the turns", turns, [1, 2, 4, 5].map(|turn| (thread(1), turn)).to_vec())
}

/// By id, page by page.
pub async fn a_listing_is_in_order_and_goes_on(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    let ids: Vec<FragmentId> = (1..=5).flat_map(|n| [id(n, 0), id(n, 1)]).collect();
    put(&*memory, ids.iter().rev().map(|id| said_at(id, "a word")).collect()).await?;
    let (mut listed, mut after) = (Vec::new(), None);
    for _ in 0..5 {
        let page = memory.list(&acme(), &Filter::default(), after.as_ref(), 3).await?;
        listed.extend(page.iter().map(|kept| kept.fragment.id.clone()));
        after = listed.last().cloned();
    }
    same("all, once", listed, ids)?;
    let only = Filter { thread: Some(thread(2)), ..Filter::default() };
    let page = memory.list(&acme(), &only, None, 9).await?;
    same("of a thread", page.len(), 2)
}

fn said_at(id: &FragmentId, text: &str) -> Kept {
    let mut kept = said(1, id.fragment, text);
    kept.fragment.id = id.clone();
    kept
}

/// Inverse document frequency is a tenant's own: else one tenant's words shift another's order.
pub async fn words_of_other_tenants_count_for_nothing(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    let own = |word: &str, most: u64| {
        (1..=most).map(|n| said(n + most * 10, 0, word)).collect::<Vec<_>>()
    };
    let mut all = own("deploy", 6);
    all.extend(own("rollback", 2));
    all.extend([said(1, 0, "deploy"), said(2, 0, "rollback")]);
    put(&*memory, all).await?;
    let before = memory.query(&acme(), &Query { k: 10, ..ask("deploy rollback") }).await?;
    let others: Vec<Kept> = (1..=40).map(|n| kit::of(&globex(), said(n, 0, "rollback"))).collect();
    memory.put(&globex(), others).await?;
    let after = memory.query(&acme(), &Query { k: 10, ..ask("deploy rollback") }).await?;
    same("the order", shown(&after), shown(&before))?;
    let first = after.first().map(|hit| hit.kept.fragment.text.clone());
    same("the rarer word", first.as_deref(), Some("rollback"))
}

/// Its id says whose it is.
pub async fn a_fragment_of_another_tenant_is_refused(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    let strange = said(1, 0, "a canary");
    let answer = memory.put(&globex(), vec![strange]).await;
    holds("it is refused", matches!(answer, Err(BusError::Refused(_))))?;
    same("nothing was kept", memory.size(&globex()).await?, Size::default())
}

fn handbook(version: &str) -> Edition {
    Edition { collection: "handbook".to_owned(), version: version.to_owned() }
}

/// Unnamed ones are not found: an agent sees what its file says.
pub async fn passages_are_found_in_the_editions_that_are_named(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    put(&*memory, vec![passage(&handbook("1"), 0, "refund"), passage(&handbook("2"), 0, "refund")])
        .await?;
    same("none is named", found(&*memory, "refund").await?, vec![])?;
    let filter = Filter { editions: vec![handbook("2")], ..Filter::default() };
    let hits = memory.query(&acme(), &Query { filter, ..ask("refund") }).await?;
    let threads: Vec<_> = hits.iter().map(|hit| hit.ranked.id.thread).collect();
    same("the one that is", threads, vec![document_thread(&handbook("2"), "policy.md")])?;
    same("all of them", memory.editions(&acme()).await?, vec![handbook("1"), handbook("2")])
}

/// From the moment that it was answered.
pub async fn a_withdrawn_edition_is_served_no_more(world: &dyn RecallWorld) -> Outcome {
    let (one, other) = (world.peer().await, world.peer().await);
    put(&*one, vec![passage(&handbook("1"), 0, "refund"), passage(&handbook("2"), 0, "refund")])
        .await?;
    one.forget(&acme(), &Scope::Edition { edition: handbook("1") }, kit::now()).await?;
    let filter = Filter { all_editions: true, ..Filter::default() };
    let hits = other.query(&acme(), &Query { filter, ..ask("refund") }).await?;
    let editions: Vec<_> = hits.iter().filter_map(|hit| hit.kept.edition()).collect();
    same("what is served", editions, vec![handbook("2")])?;
    same("what there is", other.editions(&acme()).await?, vec![handbook("2")])
}

/// Each has its own.
pub async fn a_cursor_is_kept_by_its_reader(world: &dyn RecallWorld) -> Outcome {
    let (one, other) = (world.peer().await, world.peer().await);
    same("before the first", one.cursor("indexer-0").await?, None)?;
    one.keep_cursor("indexer-0", "17").await?;
    one.keep_cursor("indexer-1", "4").await?;
    one.keep_cursor("indexer-0", "18").await?;
    same("the last one", other.cursor("indexer-0").await?.as_deref(), Some("18"))?;
    same("another reader's", other.cursor("indexer-1").await?.as_deref(), Some("4"))
}

/// Nothing of the call is kept.
pub async fn vectors_of_another_space_are_refused(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    same("before the first", memory.space().await?, None)?;
    let early = memory.put(&acme(), vec![said(1, 0, "a").with_vector(vector(1.0, 0.0))]).await;
    holds("before there is a space", matches!(early, Err(BusError::Refused(_))))?;
    memory.settle(Some(space())).await?;
    same("the space", memory.space().await?, Some(space()))?;
    let answer = memory.put(&acme(), vec![said(1, 0, "a").with_vector(vec![1.0; 7])]).await;
    holds("another dimension", matches!(answer, Err(BusError::Refused(_))))?;
    same("nothing was kept", memory.size(&acme()).await?, Size::default())
}

/// So that nothing is lost while all is indexed again.
pub async fn another_space_takes_the_vectors_away_and_leaves_the_words(
    world: &dyn RecallWorld,
) -> Outcome {
    let memory = world.peer().await;
    memory.settle(Some(space())).await?;
    put(&*memory, vec![said(1, 0, "canary").with_vector(vector(1.0, 0.0))]).await?;
    memory.settle(Some(space())).await?;
    same("settled again", memory.size(&acme()).await?, Size { fragments: 1, vectors: 1 })?;
    let larger = Space { model: "other".to_owned(), dimension: 5 };
    memory.settle(Some(larger.clone())).await?;
    same("the space", memory.space().await?, Some(larger))?;
    same("the vectors", memory.size(&acme()).await?, Size { fragments: 1, vectors: 0 })?;
    same("the words", found(&*memory, "canary").await?, vec![id(1, 0)])?;
    let again = said(1, 0, "canary").with_vector(vec![0.0, 0.0, 0.0, 0.0, 1.0]);
    same("put again", put(&*memory, vec![again]).await?.kept, 1)
}

/// Callers split and cut.
pub async fn what_is_too_large_is_refused(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    let is_refused = |answer| matches!(answer, Err(BusError::TooLarge { .. }));
    let long = said(1, 0, &"x".repeat(LONGEST_TEXT + 1));
    holds("a long text", is_refused(memory.put(&acme(), vec![long]).await))?;
    let many = (0..=MOST_AT_ONCE).map(|n| said(u64::try_from(n).unwrap_or(0), 0, "a")).collect();
    holds("many at once", is_refused(memory.put(&acme(), many).await))?;
    let most = said(1, 0, &"x".repeat(LONGEST_TEXT));
    same("the most that is taken", put(&*memory, vec![most]).await?.kept, 1)
}

/// With tombstones, cursors and the space.
pub async fn memory_survives_a_reopen(world: &dyn RecallWorld) -> Outcome {
    let memory = world.peer().await;
    memory.settle(Some(space())).await?;
    put(&*memory, vec![said(1, 0, "canary").with_vector(vector(1.0, 0.0)), said(2, 0, "canary")])
        .await?;
    memory.keep_cursor("indexer-0", "17").await?;
    memory.forget(&acme(), &Scope::Thread { thread: thread(2) }, kit::now()).await?;
    drop(memory);
    if !world.reopen().await {
        return Err(Broken::Skipped("the adapter cannot be reopened"));
    }
    let memory = world.peer().await;
    same("the words", found(&*memory, "canary").await?, vec![id(1, 0)])?;
    let query = Query { vector: Some(vector(1.0, 0.0).into()), ..ask("nothing") };
    same("the vector", shown(&memory.query(&acme(), &query).await?), vec![id(1, 0)])?;
    same("the cursor", memory.cursor("indexer-0").await?.as_deref(), Some("17"))?;
    same("the space", memory.space().await?, Some(space()))?;
    same("the tombstone", put(&*memory, vec![said(2, 0, "canary")]).await?.forgotten, 1)?;
    same("whose it is", acme().tenant(), &TenantId::new("acme").expect("a name"))
}
