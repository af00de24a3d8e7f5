//! Settings, telemetry, health, task set, two-step shutdown.
