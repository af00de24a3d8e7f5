//! The port over the file.
#![expect(clippy::disallowed_types, reason = "one connection, used by one call at a time")]

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use memory_core::fragment::FragmentId;
use memory_core::ranking::diverse;
use ports::BusError;
use ports::recall::{
    Access, Edition, Filter, Hit, Kept, MOST_HITS, Put, Query, Recall, Scope, Size, Space,
    Tombstone,
};
use proto::time::Timestamp;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

use crate::block::{Blocks, words_of};
use crate::erase;
use crate::options::Options;
use crate::rows::{self, KEPT, Line, all, edition_of, ensure_tenant, one, run, tenant_row};
use crate::schema::{pragma, prepare};
use crate::search::search;
use crate::vectors::Packed;

/// Long-term memory in a file. Clones are the same memory.
#[derive(Clone)]
pub struct SqliteRecall {
    state: Arc<Mutex<State>>,
    deadline: Duration,
}

struct State {
    conn: Connection,
    blocks: Blocks,
    /// Changes when another connection writes.
    version: i64,
}

impl std::fmt::Debug for SqliteRecall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteRecall").finish_non_exhaustive()
    }
}

fn fault(error: &rusqlite::Error) -> BusError {
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => BusError::Full(text),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => BusError::Corrupt(text),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) | None => {
            BusError::Unavailable(text)
        }
        Some(_) => BusError::Refused(text),
    }
}

impl SqliteRecall {
    /// Opens or creates the memory at `path`, in a folder that is there.
    pub fn open(path: &Path, options: Options) -> Result<Self, BusError> {
        let wrong = |error: rusqlite::Error| fault(&error);
        let mut conn = Connection::open(path).map_err(wrong)?;
        conn.busy_timeout(options.deadline).map_err(wrong)?;
        conn.set_prepared_statement_cache_capacity(64);
        prepare(&mut conn).map_err(wrong)??;
        let version = pragma(&conn, "data_version").map_err(wrong)?;
        let state = State { conn, blocks: Blocks::new(options.memory), version };
        Ok(Self { state: Arc::new(Mutex::new(state)), deadline: options.deadline })
    }

    /// Does something with the file on a thread that may wait.
    async fn run<T, F>(&self, work: F) -> Result<T, BusError>
    where
        T: Send + 'static,
        F: FnOnce(&mut State) -> Result<T, Failed> + Send + 'static,
    {
        let state = Arc::clone(&self.state);
        let job = tokio::task::spawn_blocking(move || {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.look_around().map_err(Failed::from).and_then(|()| work(&mut state))
        });
        let late = |_| BusError::Unavailable(format!("no answer within {:?}", self.deadline));
        let ended = tokio::time::timeout(self.deadline, job).await.map_err(late)?;
        let ended = ended.map_err(|error| BusError::Unavailable(error.to_string()))?;
        ended.map_err(|failed| match failed {
            Failed::Sql(error) => fault(&error),
            Failed::Bus(error) => error,
        })
    }
}

/// What can go wrong.
enum Failed {
    Sql(rusqlite::Error),
    Bus(BusError),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<BusError> for Failed {
    fn from(error: BusError) -> Self {
        Self::Bus(error)
    }
}

impl State {
    /// Another process may have forgotten something: then nothing in memory counts any more.
    fn look_around(&mut self) -> rusqlite::Result<()> {
        let version = pragma(&self.conn, "data_version")?;
        if version != self.version {
            self.version = version;
            self.blocks.forget_all();
        }
        Ok(())
    }

    fn begin(conn: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
        conn.transaction_with_behavior(TransactionBehavior::Immediate)
    }

    fn put(&mut self, access: &Access, fragments: Vec<Kept>) -> Result<Put, Failed> {
        access.admits(&fragments)?;
        let Self { conn, blocks, .. } = self;
        let tx = Self::begin(conn)?;
        check_space(&tx, &fragments)?;
        let tenant = ensure_tenant(&tx, access.tenant())?;
        let tombstones = rows::tombstones(&tx, tenant)?;
        let (mut put, mut written) = (Put::default(), Vec::new());
        for mut kept in fragments {
            if tombstones.iter().any(|tombstone| tombstone.stops(&kept)) {
                put.forgotten = put.forgotten.saturating_add(1);
                continue;
            }
            let before = rows::find(&tx, tenant, &kept.fragment.id)?;
            if let Some(Line { kept: before, .. }) = &before {
                kept.stay_superseded(before);
            }
            let vector = kept.vector.take().map(|vector| Packed::of(&vector));
            let row = rows::write(&tx, tenant, &kept, vector.as_ref())?;
            put.kept = put.kept.saturating_add(1);
            written.push((before, Line { row, kept, vector }));
        }
        tx.commit()?;
        if let Some(block) = blocks.known(access.tenant()) {
            for (before, Line { row, kept, vector }) in &written {
                if let Some(before) = before {
                    block.remove(&before.kept);
                }
                block.put(*row, kept, vector.as_ref());
            }
        }
        blocks.trim(access.tenant());
        Ok(put)
    }

    fn query(&mut self, access: &Access, query: &Query) -> Result<Vec<Hit>, Failed> {
        let Self { conn, blocks, .. } = self;
        let Some(tenant) = tenant_row(conn, access.tenant())? else { return Ok(Vec::new()) };
        let block = blocks.of(conn, access.tenant(), tenant)?;
        let (mut ranked, rows) = search(block, query);
        let most = query.k.min(MOST_HITS);
        if query.weights.mmr.is_none() {
            ranked.truncate(most);
        } else {
            ranked.truncate(MOST_HITS);
        }
        let mut hits = std::collections::BTreeMap::new();
        for one in &ranked {
            let Some(row) = rows.get(&one.id) else { continue };
            let sql = format!("SELECT {KEPT} FROM fragments WHERE id = ?1");
            if let Some(line) = rows::one(conn, &sql, [row], rows::kept)? {
                hits.insert(one.id.clone(), (words_of(&line.kept), line.kept));
            }
        }
        ranked.retain(|one| hits.contains_key(&one.id));
        let likeness = |a: &FragmentId, b: &FragmentId| match (hits.get(a), hits.get(b)) {
            (Some((a, _)), Some((b, _))) => a.likeness(b),
            (Some(_) | None, None) | (None, Some(_)) => 0.0,
        };
        let chosen = diverse(ranked, most, &query.weights, likeness);
        let hit = |ranked: memory_core::ranking::Ranked| {
            hits.remove(&ranked.id).map(|(_, kept)| Hit { kept, ranked })
        };
        Ok(chosen.into_iter().filter_map(hit).collect())
    }

    fn neighbours(
        &self,
        access: &Access,
        id: &FragmentId,
        reach: u32,
    ) -> Result<Vec<Kept>, Failed> {
        let Some(tenant) = tenant_row(&self.conn, access.tenant())? else { return Ok(Vec::new()) };
        let sql = format!(
            "SELECT {KEPT} FROM fragments WHERE tenant = ?1 AND thread = ?2 AND turn BETWEEN ?3 AND ?4
             ORDER BY turn, part"
        );
        let (thread, turn, _) = rows::place(id);
        let (from, to) = (turn.saturating_sub(reach.into()), turn.saturating_add(reach.into()));
        let lines = all(&self.conn, &sql, (tenant, thread, from, to), rows::kept)?;
        let others = lines.into_iter().filter(|line| line.kept.fragment.id != *id);
        Ok(others.map(full).collect())
    }

    fn list(
        &self,
        access: &Access,
        filter: &Filter,
        after: Option<&FragmentId>,
        limit: usize,
    ) -> Result<Vec<Kept>, Failed> {
        let Some(tenant) = tenant_row(&self.conn, access.tenant())? else { return Ok(Vec::new()) };
        let sql = format!(
            "SELECT {KEPT} FROM fragments WHERE tenant = ?1 AND (thread, turn, part) > (?2, ?3, ?4)
             ORDER BY thread, turn, part"
        );
        let (thread, turn, part) = after.map_or((String::new(), 0, 0), rows::place);
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut found = statement.query((tenant, thread, turn, part))?;
        let mut page = Vec::new();
        while page.len() < limit {
            let Some(row) = found.next()? else { break };
            let line = rows::kept(row)?;
            if filter.admits(&line.kept) {
                page.push(full(line));
            }
        }
        Ok(page)
    }

    fn supersede(
        &mut self,
        access: &Access,
        ids: &[FragmentId],
        by: &FragmentId,
        at: Timestamp,
    ) -> Result<(), Failed> {
        let Self { conn, blocks, .. } = self;
        let tx = Self::begin(conn)?;
        let Some(tenant) = tenant_row(&tx, access.tenant())? else { return Ok(()) };
        for id in ids {
            let Some(Line { mut kept, vector, .. }) = rows::find(&tx, tenant, id)? else {
                continue;
            };
            let before = kept.clone();
            kept.invalid_from = Some(at);
            kept.superseded_by = Some(by.clone());
            let row = rows::write(&tx, tenant, &kept, vector.as_ref())?;
            if let Some(block) = blocks.known(access.tenant()) {
                block.remove(&before);
                block.put(row, &kept, vector.as_ref());
            }
        }
        // A block that is ahead of a commit that fails would be wrong.
        tx.commit().inspect_err(|_| blocks.forget(access.tenant()))?;
        Ok(())
    }

    fn forget(&mut self, access: &Access, scope: &Scope, at: Timestamp) -> Result<u64, Failed> {
        let tx = Self::begin(&mut self.conn)?;
        let tenant = ensure_tenant(&tx, access.tenant())?;
        erase::bury(&tx, tenant, scope, at)?;
        let gone = erase::remove(&tx, tenant, scope)?;
        tx.commit()?;
        self.blocks.forget(access.tenant());
        if !erase::empty_log(&self.conn)? {
            let why = "what was forgotten still lies in the log of the file, which somebody reads: \
                       forget again";
            return Err(BusError::Unavailable(why.to_owned()).into());
        }
        Ok(u64::try_from(gone).unwrap_or(u64::MAX))
    }

    fn settle(&mut self, space: Option<&Space>) -> Result<(), Failed> {
        let tx = Self::begin(&mut self.conn)?;
        if space_of(&tx)?.as_ref() != space {
            run(&tx, "UPDATE fragments SET vector = NULL WHERE vector IS NOT NULL", [])?;
            run(&tx, "DELETE FROM space", [])?;
            if let Some(Space { model, dimension }) = space {
                let dimension = i64::try_from(*dimension).unwrap_or(i64::MAX);
                let sql = "INSERT INTO space(one, model, dimension) VALUES (1, ?1, ?2)";
                run(&tx, sql, (model, dimension))?;
            }
        }
        tx.commit()?;
        self.blocks.forget_all();
        Ok(())
    }
}

fn full(line: Line) -> Kept {
    let vector = line.vector.map(|packed| Arc::from(packed.unpacked()));
    Kept { vector, ..line.kept }
}

fn space_of(conn: &Connection) -> rusqlite::Result<Option<Space>> {
    one(conn, "SELECT model, dimension FROM space", [], |row| {
        let dimension = usize::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
        Ok(Space { model: row.get(0)?, dimension })
    })
}

fn check_space(conn: &Connection, fragments: &[Kept]) -> Result<(), Failed> {
    let mut lengths = fragments.iter().filter_map(|kept| kept.vector.as_ref().map(|v| v.len()));
    let Some(first) = lengths.next() else { return Ok(()) };
    let space = space_of(conn)?;
    let wanted = space.as_ref().map(|space| space.dimension);
    if wanted == Some(first) && lengths.all(|length| length == first) {
        return Ok(());
    }
    let holds =
        space.map_or_else(|| "no vectors".to_owned(), |space| format!("vectors of {space}"));
    let why = format!("a vector with {first} numbers, where memory holds {holds}");
    Err(BusError::Refused(why).into())
}

#[async_trait]
impl Recall for SqliteRecall {
    async fn put(&self, access: &Access, fragments: Vec<Kept>) -> Result<Put, BusError> {
        let access = access.clone();
        self.run(move |state| state.put(&access, fragments)).await
    }

    async fn query(&self, access: &Access, query: &Query) -> Result<Vec<Hit>, BusError> {
        let (access, query) = (access.clone(), query.clone());
        self.run(move |state| state.query(&access, &query)).await
    }

    async fn get(&self, access: &Access, ids: &[FragmentId]) -> Result<Vec<Kept>, BusError> {
        let (access, ids) = (access.clone(), ids.to_vec());
        self.run(move |state| {
            let Some(tenant) = tenant_row(&state.conn, access.tenant())? else {
                return Ok(Vec::new());
            };
            let own = ids.iter().filter(|id| id.tenant == *access.tenant());
            let found = own.map(|id| rows::find(&state.conn, tenant, id));
            let found: Vec<Option<Line>> = found.collect::<rusqlite::Result<_>>()?;
            Ok(found.into_iter().flatten().map(full).collect())
        })
        .await
    }

    async fn list(
        &self,
        access: &Access,
        filter: &Filter,
        after: Option<&FragmentId>,
        limit: usize,
    ) -> Result<Vec<Kept>, BusError> {
        let (access, filter, after) = (access.clone(), filter.clone(), after.cloned());
        self.run(move |state| state.list(&access, &filter, after.as_ref(), limit)).await
    }

    async fn neighbours(
        &self,
        access: &Access,
        id: &FragmentId,
        reach: u32,
    ) -> Result<Vec<Kept>, BusError> {
        let (access, id) = (access.clone(), id.clone());
        self.run(move |state| state.neighbours(&access, &id, reach)).await
    }

    async fn supersede(
        &self,
        access: &Access,
        ids: &[FragmentId],
        by: &FragmentId,
        at: Timestamp,
    ) -> Result<(), BusError> {
        let (access, ids, by) = (access.clone(), ids.to_vec(), by.clone());
        self.run(move |state| state.supersede(&access, &ids, &by, at)).await
    }

    async fn forget(&self, access: &Access, scope: &Scope, at: Timestamp) -> Result<u64, BusError> {
        let (access, scope) = (access.clone(), scope.clone());
        self.run(move |state| state.forget(&access, &scope, at)).await
    }

    async fn tombstones(&self, access: &Access) -> Result<Vec<Tombstone>, BusError> {
        let access = access.clone();
        self.run(move |state| match tenant_row(&state.conn, access.tenant())? {
            Some(tenant) => Ok(rows::tombstones(&state.conn, tenant)?),
            None => Ok(Vec::new()),
        })
        .await
    }

    async fn editions(&self, access: &Access) -> Result<Vec<Edition>, BusError> {
        let access = access.clone();
        self.run(move |state| {
            let sql = "SELECT DISTINCT f.edition FROM fragments f JOIN tenants t ON t.id = f.tenant
                       WHERE t.name = ?1 AND f.edition IS NOT NULL";
            let name = access.tenant().as_str();
            let texts = all(&state.conn, sql, [name], |row| row.get::<_, String>(0))?;
            let mut editions: Vec<Edition> =
                texts.iter().filter_map(|text| edition_of(text)).collect();
            editions.sort();
            Ok(editions)
        })
        .await
    }

    async fn size(&self, access: &Access) -> Result<Size, BusError> {
        let access = access.clone();
        self.run(move |state| {
            let sql = "SELECT count(*), count(f.vector) FROM fragments f
                       JOIN tenants t ON t.id = f.tenant WHERE t.name = ?1";
            let count = |row: &rusqlite::Row<'_>, at| {
                row.get::<_, i64>(at).map(|count| u64::try_from(count).unwrap_or(0))
            };
            let size = one(&state.conn, sql, [access.tenant().as_str()], |row| {
                Ok(Size { fragments: count(row, 0)?, vectors: count(row, 1)? })
            })?;
            Ok(size.unwrap_or_default())
        })
        .await
    }

    async fn cursor(&self, reader: &str) -> Result<Option<String>, BusError> {
        let reader = reader.to_owned();
        self.run(move |state| {
            let sql = "SELECT place FROM cursors WHERE reader = ?1";
            Ok(one(&state.conn, sql, [&reader], |row| row.get(0))?)
        })
        .await
    }

    async fn keep_cursor(&self, reader: &str, place: &str) -> Result<(), BusError> {
        let (reader, place) = (reader.to_owned(), place.to_owned());
        self.run(move |state| {
            let sql = "INSERT OR REPLACE INTO cursors(reader, place) VALUES (?1, ?2)";
            run(&state.conn, sql, (&reader, &place))?;
            Ok(())
        })
        .await
    }

    async fn space(&self) -> Result<Option<Space>, BusError> {
        self.run(|state| Ok(space_of(&state.conn)?)).await
    }

    async fn settle(&self, space: Option<Space>) -> Result<(), BusError> {
        self.run(move |state| state.settle(space.as_ref())).await
    }
}
