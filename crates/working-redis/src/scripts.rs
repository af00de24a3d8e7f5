//! Changes that read first, each in one step on the server. Nothing newer than Redis 6.2.
//!
//! They are sent as text each time, a few hundred bytes: a server that restarted or failed over
//! knows no script by its hash. Sequences are compared as text of one width, because the numbers
//! of the script language lose digits above 2^53.

/// Takes or renews a lease: key; holder, milliseconds. Answers `{won, holder, left}`.
pub(crate) const CLAIM: &str = "\
local by = redis.call('GET', KEYS[1])
if by and by ~= ARGV[1] then return {0, by, redis.call('PTTL', KEYS[1])} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1, ARGV[1], 0}";

/// Gives a lease back: key; holder.
pub(crate) const RELEASE: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1";

/// Keeps a value unless one is kept: key; value, milliseconds. Answers the one that was there.
pub(crate) const KEEP_FIRST: &str = "\
local kept = redis.call('GET', KEYS[1])
if kept then return kept end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return false";

/// Keeps fields unless a later sequence is kept: key; sequence, milliseconds, field, value, ….
pub(crate) const KEEP_NEWEST: &str = "\
local kept = redis.call('HGET', KEYS[1], 'sequence')
if kept and kept > ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'sequence', ARGV[1], unpack(ARGV, 3))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1";

/// Counts samples: samples, count; window, milliseconds to keep, most samples, how many follow;
/// time, `1` or `0`, ….
pub(crate) const ADD_SAMPLES: &str = "\
local n = redis.call('INCRBY', KEYS[2], ARGV[4])
for i = 5, #ARGV, 2 do
redis.call('ZADD', KEYS[1], ARGV[i], ARGV[i] .. ':' .. ARGV[i + 1] .. ':' .. n)
n = n - 1
end
local newest = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', newest - ARGV[1]))
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -ARGV[3] - 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1";

/// Reads a value with the server's time: key. Answers `{value, seconds, microseconds}`.
pub(crate) const READ_CELL: &str = "\
local now = redis.call('TIME')
return {redis.call('GET', KEYS[1]), now[1], now[2]}";

/// Puts a value in the place of another: key; `1` where there was one, it, the new one,
/// milliseconds. Answers whether it was still there.
pub(crate) const SWAP_CELL: &str = "\
local kept = redis.call('GET', KEYS[1])
if ARGV[1] == '1' then
if kept ~= ARGV[2] then return 0 end
elseif kept then return 0 end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
return 1";

/// What lies before an attempt: result, cancel mark, lease; holder, milliseconds or 0. Answers
/// `{result, cancelled, claim, holder, left}`; a claim is 1, a refused one 0, none -1.
pub(crate) const ENTER: &str = "\
local done = redis.call('GET', KEYS[1])
local cancelled = redis.call('EXISTS', KEYS[2])
if done or ARGV[2] == '0' then return {done, cancelled, -1, '', 0} end
local by = redis.call('GET', KEYS[3])
if by and by ~= ARGV[1] then return {done, cancelled, 0, by, redis.call('PTTL', KEYS[3])} end
redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[2])
return {done, cancelled, 1, ARGV[1], 0}";

/// Joins a shared read: value, lease; who, milliseconds, the earliest time that will do. Answers
/// `{0, holder, left}`, `{1, '', '0'}` for who leads, or `{2, value, time}`.
pub(crate) const JOIN_READ: &str = "\
local kept = redis.call('HMGET', KEYS[1], 'at', 'value')
if kept[1] and tonumber(kept[1]) >= tonumber(ARGV[3]) then return {2, kept[2], kept[1]} end
local by = redis.call('GET', KEYS[2])
if by and by ~= ARGV[1] then return {0, by, tostring(redis.call('PTTL', KEYS[2]))} end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return {1, '', '0'}";

/// Keeps a shared read unless a newer one is kept, and ends a lease: value, lease; who, time, value,
/// milliseconds.
pub(crate) const KEEP_READ: &str = "\
local kept = redis.call('HGET', KEYS[1], 'at')
if not kept or tonumber(kept) <= tonumber(ARGV[2]) then
redis.call('HSET', KEYS[1], 'at', ARGV[2], 'value', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1";

/// Takes one of some places: places; who, how many, milliseconds. Answers -1, or how long all are
/// taken at least.
pub(crate) const TAKE_PLACE: &str = "\
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
if not redis.call('ZSCORE', KEYS[1], ARGV[1])
and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
return redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] - now
end
redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[3]), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return -1";
