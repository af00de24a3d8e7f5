//! How a file becomes a bus. A file that is damaged, strange or newer is refused and left as it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use ports::BusError;
use rusqlite::{Connection, OpenFlags};

use crate::behind::Behind;
use crate::book::Book;
use crate::bus::Inner;
use crate::commit::Committer;
use crate::fault::fault_at_open;
use crate::freezes::FreezeFolder;
use crate::leases::Leases;
use crate::live::Air;
use crate::lock::FileLock;
use crate::options::Options;
use crate::readers::Readers;
use crate::recent::Recent;
use crate::registry::Offers;
use crate::rows::{from_sql, one};
use crate::schema::{self, Found};
use crate::writer::Writer;
use crate::writer_loop::WriterLoop;
use crate::{SqliteBus, awaited, queues};

/// How long SQLite waits for another program that has the file for a moment, such as a backup.
const PATIENCE: Duration = Duration::from_secs(5);
/// Statements kept ready per connection.
const STATEMENTS: usize = 128;

/// Erased content is overwritten; the log is moved into the file every 16 MiB and cut to 64.
const SETTINGS: &str = "
PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000;
PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864;
PRAGMA synchronous = FULL;";

impl SqliteBus {
    /// Opens or creates the store at `path`, with the folders above it, for this process alone.
    ///
    /// Answers [`BusError::Locked`] while another process owns it, [`BusError::Corrupt`] when it is
    /// damaged, [`BusError::Full`] without room to create it, and [`BusError::Refused`] when it
    /// belongs to another program or a newer build.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, BusError> {
        let path = settle_path(path.as_ref())?;
        let mut lock = FileLock::take(&path)?;
        let had_log = log_of(&path).exists();
        let conn = open_writer(&path, &options)?;
        lock.opened(had_log);
        let readers = (0..options.readers.max(1)).map(|_| open_reader(&path));
        let readers = readers.collect::<Result<Vec<_>, _>>()?;
        let freezes = FreezeFolder::of(&path);
        start(conn, readers, lock, freezes, options).map_err(|error| at(&path, &error))
    }
}

/// Where SQLite writes before it writes into the file.
fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

/// What can go wrong while the parts are put together.
enum Failed {
    Sql(rusqlite::Error),
    Thread(std::io::Error),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Self::Thread(error)
    }
}

fn at(path: &Path, failed: &Failed) -> BusError {
    match failed {
        Failed::Sql(error) => fault_at_open(error, path),
        Failed::Thread(error) => BusError::Unavailable(format!("no thread: {error}")),
    }
}

fn start(
    conn: Connection,
    readers: Vec<Connection>,
    lock: FileLock,
    freezes: FreezeFolder,
    options: Options,
) -> Result<SqliteBus, Failed> {
    let book = Arc::new(Book::new(options.ack_wait, queues::pending(&conn)?));
    let behind = Arc::new(Behind::load(&conn)?);
    let last =
        one(&conn, "SELECT max(seq) FROM sqlite_sequence WHERE name = 'records'", [], |row| {
            row.get::<_, Option<i64>>(0)
        })?;
    let (sender, inbox) = channel();
    let recent = Arc::new(Recent::default());
    let committer = Committer::new(conn, Arc::clone(&book), Arc::clone(&recent), &options);
    let writer = WriterLoop::new(inbox, committer, Arc::clone(&book), Arc::clone(&behind), lock)?;
    let thread =
        std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || writer.run())?;
    let inner = Inner {
        readers: Readers::start(readers, options.deadline)?,
        writer: Writer::new(sender, thread, options.deadline),
        book,
        recent,
        behind,
        air: Air::default(),
        offers: Offers::default(),
        freezes,
        leases: Leases::default(),
        clock: options.clock,
        registration_lasts: options.registration_lasts,
        opened_at: from_sql(last.flatten().unwrap_or(0)),
    };
    Ok(SqliteBus { inner: Arc::new(inner) })
}

/// The path behind links, with its folders made, so that every name of a file has one lock.
fn settle_path(path: &Path) -> Result<PathBuf, BusError> {
    let refuse = |error: std::io::Error| BusError::Refused(format!("{}: {error}", path.display()));
    if let Ok(real) = path.canonicalize() {
        return Ok(real);
    }
    let Some(name) = path.file_name() else {
        return Err(BusError::Refused(format!("{} is not the name of a file", path.display())));
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or_else(|| Path::new("."));
    std::fs::create_dir_all(folder).map_err(refuse)?;
    Ok(folder.canonicalize().map_err(refuse)?.join(name))
}

fn open_writer(path: &Path, options: &Options) -> Result<Connection, BusError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = connect(path, flags)?;
    let wrong = |error: rusqlite::Error| fault_at_open(&error, path);
    let found = identify(&conn, path)?;
    check_pages(&conn, path, options.check_up_to_bytes)?;
    conn.execute_batch(SETTINGS).map_err(wrong)?;
    if let Some(limit) = options.max_file_bytes {
        limit_size(&conn, limit).map_err(wrong)?;
    }
    let mode: String = conn
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(wrong)?;
    if mode != "wal" {
        let why = "its file system does not carry a write-ahead log";
        return Err(BusError::Refused(format!("{}: {why}", path.display())));
    }
    if found == Found::Empty {
        schema::create(&conn).map_err(wrong)?;
    }
    awaited::ensure(&conn).map_err(wrong)?;
    Ok(conn)
}

/// A connection that cannot write.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, BusError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = connect(path, flags)?;
    conn.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA cache_size = -8000;")
        .map_err(|error| fault_at_open(&error, path))?;
    Ok(conn)
}

/// A connection to a file on a medium that nobody can write to.
pub(crate) fn open_unchanging(path: &Path) -> Result<Connection, BusError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let escaped = |byte: &u8| {
        let is_plain = byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
        if is_plain { char::from(*byte).to_string() } else { format!("%{byte:02x}") }
    };
    let path: String = path.as_os_str().as_encoded_bytes().iter().map(escaped).collect();
    connect(Path::new(&format!("file:{path}?immutable=1")), flags)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, BusError> {
    let wrong = |error: rusqlite::Error| fault_at_open(&error, path);
    let conn = Connection::open_with_flags(path, flags).map_err(wrong)?;
    conn.busy_timeout(PATIENCE).map_err(wrong)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

/// What the file says it is; an error names the file.
pub(crate) fn identify(conn: &Connection, path: &Path) -> Result<Found, BusError> {
    let found = schema::look(conn).map_err(|error| fault_at_open(&error, path))?;
    found.map_err(|error| match error {
        BusError::Refused(why) => BusError::Refused(format!("{}: {why}", path.display())),
        other @ (BusError::Unavailable(_)
        | BusError::Full(_)
        | BusError::Corrupt(_)
        | BusError::Locked(_)
        | BusError::TooLarge { .. }) => other,
    })
}

/// Looks at every page of a file that is not too large for that.
fn check_pages(conn: &Connection, path: &Path, up_to: u64) -> Result<(), BusError> {
    if std::fs::metadata(path).is_ok_and(|about| about.len() > up_to) {
        return Ok(());
    }
    let verdict: String = conn
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| fault_at_open(&error, path))?;
    if verdict == "ok" {
        return Ok(());
    }
    Err(BusError::Corrupt(format!("{}: {verdict}", path.display())))
}

fn limit_size(conn: &Connection, bytes: u64) -> rusqlite::Result<()> {
    let page = schema::pragma(conn, "page_size")?.max(1);
    let pages = i64::try_from(bytes).unwrap_or(i64::MAX) / page;
    conn.pragma_update(None, "max_page_count", pages.max(1))
}
