//! How fragments lie in the tables.

use memory_core::fragment::FragmentId;
use ports::recall::{Edition, Kept, Scope, Tombstone};
use proto::ids::TenantId;
use proto::time::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Params, Row};

use crate::vectors::Packed;

/// The columns that [`kept`] reads.
pub(crate) const KEPT: &str = "id, rest, vector";

/// An error that says that a column does not hold what was written there.
pub(crate) fn strange(column: usize, why: &dyn std::fmt::Display) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why.to_string().into())
}

/// The row of a tenant, if it has one.
pub(crate) fn tenant_row(conn: &Connection, tenant: &TenantId) -> rusqlite::Result<Option<i64>> {
    one(conn, "SELECT id FROM tenants WHERE name = ?1", [tenant.as_str()], |row| row.get(0))
}

/// The row of a tenant, made if need be.
pub(crate) fn ensure_tenant(conn: &Connection, tenant: &TenantId) -> rusqlite::Result<i64> {
    if let Some(row) = tenant_row(conn, tenant)? {
        return Ok(row);
    }
    run(conn, "INSERT INTO tenants(name) VALUES (?1)", [tenant.as_str()])?;
    Ok(conn.last_insert_rowid())
}

/// At most one row of a cached statement.
pub(crate) fn one<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    conn.prepare_cached(sql)?.query_row(params, read).optional()
}

/// All rows of a cached statement.
pub(crate) fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    conn.prepare_cached(sql)?.query_map(params, read)?.collect()
}

/// Executes a cached statement; answers how many rows it changed.
pub(crate) fn run(conn: &Connection, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
    conn.prepare_cached(sql)?.execute(params)
}

/// A fragment with its row.
pub(crate) struct Line {
    pub(crate) row: i64,
    pub(crate) kept: Kept,
    pub(crate) vector: Option<Packed>,
}

/// Out of the columns [`KEPT`].
pub(crate) fn kept(row: &Row<'_>) -> rusqlite::Result<Line> {
    let kept = serde_json::from_str(row.get_ref(1)?.as_str()?).map_err(|why| strange(1, &why))?;
    let vector = row.get_ref(2)?.as_blob_or_null()?.and_then(Packed::from_blob);
    Ok(Line { row: row.get(0)?, kept, vector })
}

/// Where a fragment lies.
pub(crate) fn place(id: &FragmentId) -> (String, i64, u32) {
    // Numbers of turns stay far below 2^63.
    (id.thread.to_string(), i64::try_from(id.turn).unwrap_or(i64::MAX), id.fragment)
}

/// The fragment of a place.
pub(crate) fn find(
    conn: &Connection,
    tenant: i64,
    id: &FragmentId,
) -> rusqlite::Result<Option<Line>> {
    let sql = "SELECT id, rest, vector FROM fragments
               WHERE tenant = ?1 AND thread = ?2 AND turn = ?3 AND part = ?4";
    let (thread, turn, part) = place(id);
    one(conn, sql, (tenant, thread, turn, part), kept)
}

/// Writes a fragment in the place of an earlier one; answers with its row.
pub(crate) fn write(
    conn: &Connection,
    tenant: i64,
    kept: &Kept,
    vector: Option<&Packed>,
) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO fragments(tenant, thread, turn, part, at, edition, rest, vector)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
               ON CONFLICT(tenant, thread, turn, part) DO UPDATE SET at = excluded.at,
                 edition = excluded.edition, rest = excluded.rest, vector = excluded.vector
               RETURNING id";
    let (thread, turn, part) = place(&kept.fragment.id);
    let rest = serde_json::to_string(kept).map_err(|why| strange(6, &why))?;
    let edition = kept.edition().map(|edition| edition_text(&edition));
    let blob = vector.map(Packed::to_blob);
    let at = kept.fragment.at.0;
    let row = one(conn, sql, (tenant, thread, turn, part, at, edition, rest, blob), |row| {
        row.get::<_, i64>(0)
    })?;
    let row = row.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    run(conn, "DELETE FROM subjects WHERE fragment = ?1", [row])?;
    for subject in kept.subjects() {
        let sql = "INSERT OR IGNORE INTO subjects(tenant, hash, fragment) VALUES (?1, ?2, ?3)";
        run(conn, sql, (tenant, Scope::subject_hash(subject), row))?;
    }
    Ok(row)
}

/// An edition as one text: neither part can have a line break.
pub(crate) fn edition_text(edition: &Edition) -> String {
    format!("{}\n{}", edition.collection, edition.version)
}

/// The same back.
pub(crate) fn edition_of(text: &str) -> Option<Edition> {
    let (collection, version) = text.split_once('\n')?;
    Some(Edition { collection: collection.to_owned(), version: version.to_owned() })
}

/// The tombstones of a tenant.
pub(crate) fn tombstones(conn: &Connection, tenant: i64) -> rusqlite::Result<Vec<Tombstone>> {
    let sql = "SELECT scope, at FROM tombstones WHERE tenant = ?1 ORDER BY scope";
    let mut found: Vec<Tombstone> = all(conn, sql, [tenant], |row| {
        let scope =
            serde_json::from_str(row.get_ref(0)?.as_str()?).map_err(|why| strange(0, &why))?;
        Ok(Tombstone { scope, at: Timestamp(row.get(1)?) })
    })?;
    found.sort_by(|a, b| a.scope.cmp(&b.scope));
    Ok(found)
}
