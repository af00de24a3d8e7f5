//! Every metric of a worker: names, units, labels. `docs/metrics.md` explains them.

use std::time::Duration;

use prometheus::{Gauge, HistogramVec, IntCounter, IntCounterVec, IntGauge, Registry};
use proto::error_code::ErrorCode;
use proto::observation::Observation;
use service_runtime::metrics::Maker;

const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// What a worker counts.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    pub(crate) tool_call_seconds: HistogramVec,
    observations: IntCounterVec,
    queue_wait: HistogramVec,
    deliveries: IntCounterVec,
    redeliveries: IntCounterVec,
    pub(crate) given_back: IntCounterVec,
    pub(crate) conflicts: IntCounter,
    doubts: IntCounterVec,
    shared: IntCounterVec,
    pub(crate) mismatches: IntCounterVec,
    pub(crate) slots: IntGauge,
    pub(crate) slots_in_use: IntGauge,
    pub(crate) clock_ahead: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let make = Maker::new("worker");
        let tool: &[&str] = &["tool"];
        Self {
            registry: make.registry(),
            tool_call_seconds: make.histograms(
                "tool_call_seconds",
                "How long an attempt took.",
                SECONDS,
                tool,
            ),
            observations: make.counters(
                "observations_total",
                "Calls answered; the code of a good result is `ok`.",
                &["tool", "code"],
            ),
            queue_wait: make.histograms(
                "queue_wait_seconds",
                "From a call's storage to its first delivery.",
                SECONDS,
                tool,
            ),
            deliveries: make.counters("deliveries_total", "Calls delivered.", tool),
            redeliveries: make.counters(
                "redeliveries_total",
                "Calls delivered that were delivered before.",
                tool,
            ),
            given_back: make.counters("given_back_total", "Calls given back for later.", tool),
            conflicts: make.counter("conflicts_total", "Start records that lost the fence."),
            doubts: make.counters("doubts_total", "Calls answered as in doubt.", tool),
            shared: make.counters(
                "shared_reads_total",
                "Calls answered with the result of another one: `kept` or `stale`.",
                &["tool", "as"],
            ),
            mismatches: make.counters(
                "fingerprint_mismatches_total",
                "Calls refused because the tool here is another version.",
                tool,
            ),
            slots: make.gauge("slots", "Calls that may be worked on at once."),
            slots_in_use: make.gauge("slots_in_use", "Calls worked on now."),
            clock_ahead: make.amount(
                "clock_ahead_seconds",
                "By how much this process's clock is ahead of the bus's, as last measured.",
            ),
        }
    }

    /// Where they are gathered.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Counts a delivery; only a first one tells how long its call waited.
    pub(crate) fn delivered(&self, tool: &str, count: u64, waited: Duration) {
        self.deliveries.with_label_values(&[tool]).inc();
        if count > 1 {
            self.redeliveries.with_label_values(&[tool]).inc();
        } else {
            self.queue_wait.with_label_values(&[tool]).observe(waited.as_secs_f64());
        }
    }

    /// Counts a call that another one was executed for.
    pub(crate) fn shared(&self, tool: &str, way: &str) {
        self.shared.with_label_values(&[tool, way]).inc();
    }

    /// Counts an answer.
    pub(crate) fn observed(&self, tool: &str, observation: &Observation) {
        let code = observation.code.map_or("ok", ErrorCode::as_str);
        self.observations.with_label_values(&[tool, code]).inc();
        if observation.code == Some(ErrorCode::VersionMismatch) {
            self.mismatches.with_label_values(&[tool]).inc();
        }
        if observation.code == Some(ErrorCode::InDoubt) {
            self.doubts.with_label_values(&[tool]).inc();
        }
    }
}
