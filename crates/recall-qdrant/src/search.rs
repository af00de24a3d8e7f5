//! One question: both lists, their fusion and the formula in one request; then what turns give to the
//! turns beside them.

use std::collections::BTreeMap;

use memory_core::fragment::FragmentId;
use memory_core::lexical::Words;
use memory_core::ranking::{Known, Reading, Weights, decay, diverse, rank_fused};
use ports::BusError;
use ports::recall::{Access, Hit, Kept, MOST_HITS, Query};
use qdrant_client::qdrant::{
    Condition, DecayParamsExpressionBuilder, Expression, Filter, FormulaBuilder, IdfParamsBuilder,
    PrefetchQuery, PrefetchQueryBuilder, Query as Wanted, QueryPointsBuilder, RrfBuilder,
    ScoredPoint, SearchParamsBuilder, VectorInput,
};

use crate::filters::{What, answering, own, turns};
use crate::points::{MEANING, WORDS, days, kept};
use crate::store::{QdrantRecall, wrong};

/// How long each list is.
const LIST: u64 = 200;
/// Turns whose neighbours are looked for.
const LIFTING: usize = 32;

impl QdrantRecall {
    /// Everything that may be an answer, in order, with its fragment.
    pub(crate) async fn search(
        &self,
        access: &Access,
        query: &Query,
    ) -> Result<Vec<Hit>, BusError> {
        let lists = self.lists(access, query).await?;
        if lists.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = BTreeMap::new();
        let mut bases = BTreeMap::new();
        for point in self.weighed(query, lists).await? {
            let one = kept(&point.payload, None)?;
            let base = f64::from(point.score) / factor(&one, query);
            bases.insert(one.fragment.id.clone(), base);
            found.insert(one.fragment.id.clone(), one);
        }
        for one in self.beside(access, query, &bases).await? {
            found.entry(one.fragment.id.clone()).or_insert(one);
        }
        let known = found.iter().map(|(id, one)| (id.clone(), known_of(one))).collect();
        let reading = Reading::AsOf(query.about());
        let mut ranked = rank_fused(&bases, &known, &query.weights, reading);
        ranked.truncate(MOST_HITS);
        let words: BTreeMap<FragmentId, Words> = ranked
            .iter()
            .filter_map(|one| Some((one.id.clone(), Words::of(&found.get(&one.id)?.searched()))))
            .collect();
        let likeness = |a: &FragmentId, b: &FragmentId| match (words.get(a), words.get(b)) {
            (Some(a), Some(b)) => a.likeness(b),
            (Some(_) | None, None) | (None, Some(_)) => 0.0,
        };
        let chosen = diverse(ranked, query.k.min(MOST_HITS), &query.weights, likeness);
        let hit = |ranked: memory_core::ranking::Ranked| {
            found.remove(&ranked.id).map(|kept| Hit { kept, ranked })
        };
        Ok(chosen.into_iter().filter_map(hit).collect())
    }

    /// The lists that there are for the question.
    async fn lists(&self, access: &Access, query: &Query) -> Result<Vec<PrefetchQuery>, BusError> {
        let mut lists = Vec::new();
        let words: Vec<(u32, f32)> =
            Words::of(&query.text).distinct().map(|word| (word, 1.0)).collect();
        let filter = answering(access, query);
        if !words.is_empty() {
            // How rare a word is, is a matter of this tenant's fragments alone.
            let corpus = IdfParamsBuilder::new().corpus(own(access, What::Fragment));
            let params = SearchParamsBuilder::default().idf(corpus);
            let (indices, values): (Vec<u32>, Vec<f32>) = words.into_iter().unzip();
            let near = Wanted::new_nearest(VectorInput::new_sparse(indices, values));
            let list = PrefetchQueryBuilder::default().query(near).using(WORDS);
            let list = list.filter(filter.clone()).params(params).limit(LIST);
            lists.push(list.build());
        }
        if let Some(vector) = &query.vector
            && self.read_space().await?.is_some_and(|space| space.dimension == vector.len())
        {
            let near = Wanted::new_nearest(VectorInput::new_dense(vector.to_vec()));
            let params = SearchParamsBuilder::default().exact(true);
            let list = PrefetchQueryBuilder::default().query(near).using(MEANING);
            let list = list.filter(filter).params(params).score_threshold(f32::MIN_POSITIVE);
            lists.push(list.limit(LIST).build());
        }
        Ok(lists)
    }

    /// The lists fused by their places, and what importance, kind and age make of the sum.
    async fn weighed(
        &self,
        query: &Query,
        lists: Vec<PrefetchQuery>,
    ) -> Result<Vec<ScoredPoint>, BusError> {
        let rrf = RrfBuilder::with_k(server_k(query.weights.rrf_k)).build();
        let both = LIST.saturating_mul(2);
        let fused = PrefetchQueryBuilder::default().prefetch(lists).query(Wanted::new_rrf(rrf));
        let formula = FormulaBuilder::new(formula(query))
            .add_default("importance", 0.0)
            .add_default("days", 0.0);
        let ask = QueryPointsBuilder::new(self.collection.clone())
            .prefetch(vec![fused.limit(both).build()])
            .query(Wanted::new_formula(formula))
            .limit(both)
            .with_payload(true);
        let answer = self.client.query(ask).await.map_err(|error| wrong(&error))?;
        Ok(answer.result)
    }

    /// The turns beside the best ones, as far as they may be answers.
    async fn beside(
        &self,
        access: &Access,
        query: &Query,
        bases: &BTreeMap<FragmentId, f64>,
    ) -> Result<Vec<Kept>, BusError> {
        if query.weights.neighbour <= 0.0 || bases.is_empty() {
            return Ok(Vec::new());
        }
        let mut best: Vec<(&FragmentId, &f64)> = bases.iter().collect();
        best.sort_by(|a, b| b.1.total_cmp(a.1));
        let rows = best.into_iter().take(LIFTING).map(|(id, _)| {
            let turn = i64::try_from(id.turn).unwrap_or(i64::MAX);
            let (from, to) = (turn.saturating_sub(1), turn.saturating_add(1));
            Condition::from(turns(&id.thread.to_string(), from, to))
        });
        let mut filter = answering(access, query);
        filter.must.push(Filter::should(rows).into());
        let points = self.scroll_all(filter, false).await?;
        points.iter().map(|point| kept(&point.payload, None)).collect()
    }
}

/// The server counts places from 0, the formula from 1.
fn server_k(k: f64) -> u32 {
    format!("{:.0}", k + 1.0).parse().unwrap_or(11)
}

/// The factors of the formula that every store shares, as the server computes them. What no longer
/// holds was left out before.
fn formula(query: &Query) -> Expression {
    let Weights { prior, kinds, half_life, decay_floor, .. } = &query.weights;
    let importance = Expression::mult_with([
        Expression::constant(narrow(*prior)),
        Expression::variable("importance"),
    ]);
    let mut factors =
        vec![Expression::score(), Expression::sum_with([Expression::constant(1.0), importance])];
    if !kinds.is_empty() {
        let gains = kinds.iter().map(|(kind, weight)| {
            let is_it = Condition::matches("kind", kind.as_str().to_owned());
            let gain = Expression::constant(narrow(weight - 1.0));
            Expression::mult_with([Expression::condition(is_it), gain])
        });
        let all = [Expression::constant(1.0)].into_iter().chain(gains);
        factors.push(Expression::sum_with(all));
    }
    if let Some(half_life) = half_life.filter(|span| !span.is_zero()) {
        let age = DecayParamsExpressionBuilder::new(Expression::variable("days"))
            .target(Expression::constant(narrow(days(query.about()))))
            .scale(half_life.as_secs_f32() / 86_400.0)
            .midpoint(0.5);
        let floor = Expression::constant(narrow(*decay_floor));
        factors.push(Expression::max_with([Expression::exp_decay(age), floor]));
    }
    Expression::mult_with(factors)
}

#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "weights are small")]
fn narrow(weight: f64) -> f32 {
    weight as f32
}

/// What the server multiplied the fused places with.
fn factor(one: &Kept, query: &Query) -> f64 {
    let Weights { prior, kinds, .. } = &query.weights;
    let importance = 1.0 + prior * one.fragment.importance.clamp(0.0, 1.0);
    let kind = kinds.get(&one.fragment.kind).copied().unwrap_or(1.0);
    importance * kind * decay(&query.weights, query.about().since(one.fragment.at))
}

fn known_of(one: &Kept) -> Known {
    Known {
        importance: one.fragment.importance,
        kind: one.fragment.kind,
        at: one.fragment.at,
        invalid_from: one.invalid_from,
        superseded_by: one.superseded_by.clone(),
    }
}
