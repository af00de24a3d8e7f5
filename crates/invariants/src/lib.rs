//! Named rules over a recorded history; pure.
