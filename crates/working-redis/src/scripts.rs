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
