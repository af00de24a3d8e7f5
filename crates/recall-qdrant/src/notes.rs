//! What is noted beside fragments: tombstones, cursors and the space of the vectors, as points
//! without a vector.

use ports::BusError;
use ports::recall::{Access, Scope, Space, Tombstone};
use proto::time::Timestamp;
use qdrant_client::qdrant::{
    GetPointsBuilder, NamedVectors, PointStruct, UpsertPointsBuilder, Value,
};
use serde::{Deserialize, Serialize};

use crate::filters::{What, own};
use crate::points::{Payload, payload, point_of};
use crate::store::{QdrantRecall, wrong};

/// Points of the store itself belong to a tenant that there cannot be.
const NOBODY: &str = "";

impl QdrantRecall {
    /// The tombstones of a tenant, by scope.
    pub(crate) async fn stones(&self, access: &Access) -> Result<Vec<Tombstone>, BusError> {
        let points = self.scroll_all(own(access, What::Tombstone), false).await?;
        let read = |text: &str| {
            serde_json::from_str(text).map_err(|error| BusError::Corrupt(error.to_string()))
        };
        let texts = points.iter().filter_map(|point| point.payload.get("rest")?.as_str());
        let mut stones: Vec<Tombstone> = texts.map(|text| read(text)).collect::<Result<_, _>>()?;
        stones.sort_by(|a, b| a.scope.cmp(&b.scope));
        Ok(stones)
    }

    /// Writes a tombstone; a later one of the same scope takes its place.
    pub(crate) async fn bury(
        &self,
        access: &Access,
        scope: &Scope,
        at: Timestamp,
    ) -> Result<(), BusError> {
        let before = self.stones(access).await?;
        let same = before.iter().find(|stone| stone.scope == *scope);
        let at = same.map_or(at, |stone| at.max(stone.at));
        let text = |stone: &Tombstone| {
            serde_json::to_string(stone).map_err(|error| BusError::Refused(error.to_string()))
        };
        let scope_text =
            serde_json::to_string(scope).map_err(|error| BusError::Refused(error.to_string()))?;
        let mut payload = payload(access, What::Tombstone);
        let stone = text(&Tombstone { scope: scope.clone(), at })?;
        payload.insert("rest".to_owned(), stone.into());
        self.note(&format!("tombstone\n{}\n{scope_text}", access.tenant()), payload).await
    }

    pub(crate) async fn read_cursor(&self, reader: &str) -> Result<Option<String>, BusError> {
        self.read_note(&format!("cursor\n{reader}")).await
    }

    pub(crate) async fn write_cursor(&self, reader: &str, place: &str) -> Result<(), BusError> {
        self.note(&format!("cursor\n{reader}"), nobodys(place)).await
    }

    pub(crate) async fn read_space(&self) -> Result<Option<Space>, BusError> {
        let Some(text) = self.read_note("space").await? else { return Ok(None) };
        let noted: Option<NotedSpace> =
            serde_json::from_str(&text).map_err(|error| BusError::Corrupt(error.to_string()))?;
        Ok(noted.map(|NotedSpace { model, dimension }| Space { model, dimension }))
    }

    pub(crate) async fn write_space(&self, space: Option<&Space>) -> Result<(), BusError> {
        let noted = space.map(|Space { model, dimension }| NotedSpace {
            model: model.clone(),
            dimension: *dimension,
        });
        let text =
            serde_json::to_string(&noted).map_err(|error| BusError::Refused(error.to_string()))?;
        self.note("space", nobodys(&text)).await
    }

    async fn note(&self, name: &str, payload: Payload) -> Result<(), BusError> {
        let vectors = Some(NamedVectors::default().into());
        let point = PointStruct { id: Some(point_of(name)), payload, vectors };
        let upsert = UpsertPointsBuilder::new(self.collection.clone(), vec![point]).wait(true);
        self.client.upsert_points(upsert).await.map_err(|error| wrong(&error)).map(drop)
    }

    async fn read_note(&self, name: &str) -> Result<Option<String>, BusError> {
        let get = GetPointsBuilder::new(self.collection.clone(), vec![point_of(name)]);
        let answer = self.client.get_points(get.with_payload(true)).await;
        let found = answer.map_err(|error| wrong(&error))?.result.into_iter().next();
        let text = found.and_then(|point| Some(point.payload.get("rest")?.as_str()?.clone()));
        Ok(text)
    }
}

#[derive(Serialize, Deserialize)]
struct NotedSpace {
    model: String,
    dimension: usize,
}

fn nobodys(rest: &str) -> Payload {
    let entries = [("tenant", NOBODY), ("what", "note"), ("rest", rest)];
    entries.map(|(key, value)| (key.to_owned(), Value::from(value))).into()
}
