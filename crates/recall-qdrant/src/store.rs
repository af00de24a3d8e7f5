//! The port over a collection.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use memory_core::fragment::FragmentId;
use ports::BusError;
use ports::recall::{
    Access, Edition, Filter, Hit, Kept, Put, Query, Recall, Scope, Size, Space, Tombstone,
};
use proto::time::Timestamp;
use qdrant_client::qdrant::{
    Condition, CountPointsBuilder, DeletePointsBuilder, FacetCountsBuilder, Filter as Where,
    PointStruct, RetrievedPoint, ScrollPointsBuilder, SetPayloadPointsBuilder, UpsertPointsBuilder,
    facet_value,
};
use qdrant_client::{Qdrant, QdrantError};
use tokio::sync::OnceCell;

use crate::filters::{What, covered, fitting, own, own_ids, turns};
use crate::points::{MEANING, edition_of, fragment_payload, fragment_point, kept, point};
use crate::settings::Settings;
use crate::setup;

/// Points of one page.
const PAGE: u32 = 512;
/// Pages of one listing: what lies beyond is not looked at.
const PAGES: usize = 1000;
/// The most editions of a tenant.
const EDITIONS: u64 = 10_000;

/// Long-term memory in a collection.
pub struct QdrantRecall {
    pub(crate) client: Qdrant,
    pub(crate) collection: String,
    deadline: Duration,
    ready: OnceCell<()>,
}

impl std::fmt::Debug for QdrantRecall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QdrantRecall").field("collection", &self.collection).finish_non_exhaustive()
    }
}

/// What the server's answer means for the caller.
pub(crate) fn wrong(error: &QdrantError) -> BusError {
    if let QdrantError::ResponseError { status } = error {
        let code = format!("{:?}", status.code());
        let text = format!("Qdrant: {code}: {}", status.message());
        let waits =
            ["Unavailable", "DeadlineExceeded", "Cancelled", "Unknown", "Internal", "Aborted"];
        if !waits.contains(&code.as_str()) {
            return BusError::Refused(text);
        }
        return BusError::Unavailable(text);
    }
    BusError::Unavailable(format!("Qdrant: {error}"))
}

impl QdrantRecall {
    /// A client of a server, which is asked when it is needed first.
    pub fn new(settings: Settings) -> Result<Self, BusError> {
        let Settings { url, api_key, collection, request } = settings;
        let mut config = Qdrant::from_url(&url).timeout(request).connect_timeout(request);
        config.api_key = api_key;
        // It would print to standard error, and ask before anybody asks it.
        config.check_compatibility = false;
        let client = config.build().map_err(|error| BusError::Refused(error.to_string()))?;
        Ok(Self { client, collection, deadline: request, ready: OnceCell::new() })
    }

    /// Makes the collection if need be, then does something with it, all within bounds. In a box:
    /// requests of this client are large.
    fn with<'a, T: Send + 'a>(
        &'a self,
        work: impl Future<Output = Result<T, BusError>> + Send + 'a,
    ) -> Pin<Box<dyn Future<Output = Result<T, BusError>> + Send + 'a>> {
        let work = Box::pin(async move {
            self.ready.get_or_try_init(|| setup::ensure(self)).await?;
            work.await
        });
        // One call is several requests, each with a deadline of its own.
        let patience = self.deadline.saturating_mul(6);
        Box::pin(async move {
            let late = |_| BusError::Unavailable(format!("Qdrant: no answer within {patience:?}"));
            tokio::time::timeout(patience, work).await.map_err(late)?
        })
    }

    /// All points of a filter, page by page.
    pub(crate) async fn scroll_all(
        &self,
        filter: Where,
        with_vectors: bool,
    ) -> Result<Vec<RetrievedPoint>, BusError> {
        let (mut found, mut next) = (Vec::new(), None);
        for _ in 0..PAGES {
            let mut scroll = ScrollPointsBuilder::new(self.collection.clone())
                .filter(filter.clone())
                .limit(PAGE)
                .with_payload(true)
                .with_vectors(with_vectors);
            if let Some(offset) = next.take() {
                scroll = scroll.offset::<qdrant_client::qdrant::PointId>(offset);
            }
            let answer = self.client.scroll(scroll).await.map_err(|error| wrong(&error))?;
            found.extend(answer.result);
            match answer.next_page_offset {
                Some(offset) => next = Some(offset),
                None => break,
            }
        }
        Ok(found)
    }

    async fn all(&self, filter: Where, with_vectors: bool) -> Result<Vec<Kept>, BusError> {
        let points = self.scroll_all(filter, with_vectors).await?;
        let read = |point: RetrievedPoint| kept(&point.payload, point.vectors);
        let mut all: Vec<Kept> = points.into_iter().map(read).collect::<Result<_, _>>()?;
        all.sort_by(|a, b| a.fragment.id.cmp(&b.fragment.id));
        Ok(all)
    }

    async fn by_id(
        &self,
        access: &Access,
        ids: &[FragmentId],
    ) -> Result<BTreeMap<FragmentId, Kept>, BusError> {
        let own = ids.iter().filter(|id| id.tenant == *access.tenant());
        let points: Vec<_> = own.map(fragment_point).collect();
        if points.is_empty() {
            return Ok(BTreeMap::new());
        }
        let all = self.all(own_ids(access, points), true).await?;
        Ok(all.into_iter().map(|kept| (kept.fragment.id.clone(), kept)).collect())
    }

    async fn put_all(&self, access: &Access, mut fragments: Vec<Kept>) -> Result<Put, BusError> {
        access.admits(&fragments)?;
        self.check_space(&fragments).await?;
        let mut put = Put::default();
        let stones = self.stones(access).await?;
        let is_free = |kept: &Kept| !stones.iter().any(|stone| stone.stops(kept));
        let asked = fragments.len();
        fragments.retain(is_free);
        put.forgotten = asked.saturating_sub(fragments.len());
        let ids: Vec<FragmentId> = fragments.iter().map(|kept| kept.fragment.id.clone()).collect();
        let before = self.by_id(access, &ids).await?;
        for kept in &mut fragments {
            if let Some(before) = before.get(&kept.fragment.id) {
                kept.stay_superseded(before);
            }
        }
        if fragments.is_empty() {
            return Ok(put);
        }
        let points: Vec<PointStruct> =
            fragments.iter().map(|kept| point(access, kept)).collect::<Result<_, _>>()?;
        let upsert = UpsertPointsBuilder::new(self.collection.clone(), points).wait(true);
        self.client.upsert_points(upsert).await.map_err(|error| wrong(&error))?;
        // Somebody may have forgotten them meanwhile.
        let stones = self.stones(access).await?;
        let late: Vec<_> = fragments
            .iter()
            .filter(|kept| stones.iter().any(|stone| stone.stops(kept)))
            .map(|kept| fragment_point(&kept.fragment.id))
            .collect();
        put.kept = fragments.len().saturating_sub(late.len());
        put.forgotten = put.forgotten.saturating_add(late.len());
        if !late.is_empty() {
            self.delete(own_ids(access, late)).await?;
        }
        Ok(put)
    }

    async fn check_space(&self, fragments: &[Kept]) -> Result<(), BusError> {
        let mut lengths = fragments.iter().filter_map(|kept| Some(kept.vector.as_ref()?.len()));
        let Some(first) = lengths.next() else { return Ok(()) };
        let space = self.read_space().await?;
        let wanted = space.as_ref().map(|space| space.dimension);
        if wanted == Some(first) && lengths.all(|length| length == first) {
            return Ok(());
        }
        let holds =
            space.map_or_else(|| "no vectors".to_owned(), |space| format!("vectors of {space}"));
        let why = format!("a vector with {first} numbers, where memory holds {holds}");
        Err(BusError::Refused(why))
    }

    async fn delete(&self, filter: Where) -> Result<(), BusError> {
        let delete = DeletePointsBuilder::new(self.collection.clone()).points(filter).wait(true);
        self.client.delete_points(delete).await.map_err(|error| wrong(&error)).map(drop)
    }

    async fn count(&self, filter: Where) -> Result<u64, BusError> {
        let count = CountPointsBuilder::new(self.collection.clone()).filter(filter).exact(true);
        let answer = self.client.count(count).await.map_err(|error| wrong(&error))?;
        Ok(answer.result.map_or(0, |result| result.count))
    }

    async fn supersede_all(
        &self,
        access: &Access,
        ids: &[FragmentId],
        by: &FragmentId,
        at: Timestamp,
    ) -> Result<(), BusError> {
        for (id, mut kept) in self.by_id(access, ids).await? {
            kept.invalid_from = Some(at);
            kept.superseded_by = Some(by.clone());
            let payload = fragment_payload(access, &kept)?;
            let set = SetPayloadPointsBuilder::new(self.collection.clone(), payload);
            let set = set.points_selector(own_ids(access, vec![fragment_point(&id)])).wait(true);
            self.client.set_payload(set).await.map_err(|error| wrong(&error))?;
        }
        Ok(())
    }

    async fn forget_all(
        &self,
        access: &Access,
        scope: &Scope,
        at: Timestamp,
    ) -> Result<u64, BusError> {
        self.bury(access, scope, at).await?;
        let point = || match scope {
            Scope::Fragment { id } if id.tenant == *access.tenant() => Some(fragment_point(id)),
            Scope::Fragment { .. }
            | Scope::Tenant
            | Scope::Thread { .. }
            | Scope::Subject { .. }
            | Scope::Edition { .. } => None,
        };
        let filter = covered(access, scope, point);
        let gone = self.count(filter.clone()).await?;
        self.delete(filter).await?;
        Ok(gone)
    }
}

#[async_trait]
impl Recall for QdrantRecall {
    async fn put(&self, access: &Access, fragments: Vec<Kept>) -> Result<Put, BusError> {
        self.with(self.put_all(access, fragments)).await
    }

    async fn query(&self, access: &Access, query: &Query) -> Result<Vec<Hit>, BusError> {
        self.with(self.search(access, query)).await
    }

    async fn get(&self, access: &Access, ids: &[FragmentId]) -> Result<Vec<Kept>, BusError> {
        let mut found = self.with(self.by_id(access, ids)).await?;
        Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
    }

    async fn list(
        &self,
        access: &Access,
        filter: &Filter,
        after: Option<&FragmentId>,
        limit: usize,
    ) -> Result<Vec<Kept>, BusError> {
        let all = self.with(self.all(fitting(access, filter), false)).await?;
        let rest =
            all.into_iter().filter(|kept| after.is_none_or(|after| kept.fragment.id > *after));
        Ok(rest.take(limit).collect())
    }

    async fn neighbours(
        &self,
        access: &Access,
        id: &FragmentId,
        reach: u32,
    ) -> Result<Vec<Kept>, BusError> {
        let turn = i64::try_from(id.turn).unwrap_or(i64::MAX);
        let (from, to) = (turn.saturating_sub(reach.into()), turn.saturating_add(reach.into()));
        let mut filter = own(access, What::Fragment);
        filter.must.push(turns(&id.thread.to_string(), from, to).into());
        let all = self.with(self.all(filter, true)).await?;
        Ok(all.into_iter().filter(|kept| kept.fragment.id != *id).collect())
    }

    async fn supersede(
        &self,
        access: &Access,
        ids: &[FragmentId],
        by: &FragmentId,
        at: Timestamp,
    ) -> Result<(), BusError> {
        self.with(self.supersede_all(access, ids, by, at)).await
    }

    async fn forget(&self, access: &Access, scope: &Scope, at: Timestamp) -> Result<u64, BusError> {
        self.with(self.forget_all(access, scope, at)).await
    }

    async fn tombstones(&self, access: &Access) -> Result<Vec<Tombstone>, BusError> {
        self.with(self.stones(access)).await
    }

    async fn editions(&self, access: &Access) -> Result<Vec<Edition>, BusError> {
        let facet = FacetCountsBuilder::new(self.collection.clone(), "edition")
            .filter(own(access, What::Fragment))
            .limit(EDITIONS)
            .exact(true);
        let ask = async { self.client.facet(facet).await.map_err(|error| wrong(&error)) };
        let answer = self.with(ask).await?;
        let texts = answer.hits.into_iter().filter_map(|hit| match hit.value?.variant? {
            facet_value::Variant::StringValue(text) => edition_of(&text),
            facet_value::Variant::IntegerValue(_) | facet_value::Variant::BoolValue(_) => None,
        });
        let mut editions: Vec<Edition> = texts.collect();
        editions.sort();
        Ok(editions)
    }

    async fn size(&self, access: &Access) -> Result<Size, BusError> {
        let all = own(access, What::Fragment);
        let ask = async {
            let fragments = self.count(all.clone()).await?;
            // Without a space there is no vector to ask for.
            if self.read_space().await?.is_none() {
                return Ok(Size { fragments, vectors: 0 });
            }
            let mut with = all.clone();
            with.must.push(Condition::has_vector(MEANING));
            Ok(Size { fragments, vectors: self.count(with).await? })
        };
        self.with(ask).await
    }

    async fn cursor(&self, reader: &str) -> Result<Option<String>, BusError> {
        self.with(self.read_cursor(reader)).await
    }

    async fn keep_cursor(&self, reader: &str, place: &str) -> Result<(), BusError> {
        self.with(self.write_cursor(reader, place)).await
    }

    async fn space(&self) -> Result<Option<Space>, BusError> {
        self.with(self.read_space()).await
    }

    async fn settle(&self, space: Option<Space>) -> Result<(), BusError> {
        let settle = async {
            let before = self.read_space().await?;
            if before != space {
                setup::resettle(self, before.as_ref(), space.as_ref()).await?;
                self.write_space(space.as_ref()).await?;
            }
            Ok(())
        };
        self.with(settle).await
    }
}
