//! Every metric of a gateway: names, units, labels. `docs/metrics.md` explains them.

use std::time::Duration;

use axum::http::StatusCode;
use prometheus::{Histogram, IntCounter, IntCounterVec, IntGauge, Registry};
use proto::input::InputBody;
use service_runtime::metrics::Maker;

const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// What a gateway counts.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    request_seconds: Histogram,
    inputs: IntCounterVec,
    pub(crate) readers: IntGauge,
    pub(crate) resets: IntCounter,
    pub(crate) lagged: IntCounter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let make = Maker::new("gateway");
        Self {
            registry: make.registry(),
            requests: make.counters("requests_total", "Requests answered.", &["status"]),
            request_seconds: make.histogram(
                "request_seconds",
                "From a request to its answer; a cancel waits for the end of its run.",
                SECONDS,
            ),
            inputs: make.counters(
                "inputs_total",
                "Inputs accepted, repeated ones too.",
                &["input"],
            ),
            readers: make.gauge("readers", "Readers of events now."),
            resets: make.counter("resets_total", "Readers told that the journal lost its tail."),
            lagged: make.counter("lagged_total", "Gaps in live text that readers were told of."),
        }
    }

    /// Where they are gathered.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn answered(&self, status: StatusCode, after: Duration) {
        self.requests.with_label_values(&[status.as_str()]).inc();
        self.request_seconds.observe(after.as_secs_f64());
    }

    pub(crate) fn accepted(&self, body: &InputBody) {
        let input = match body {
            InputBody::Message(_) => "message",
            InputBody::Steer(_) => "steer",
            InputBody::Interrupt(_) => "interrupt",
            InputBody::Cancel { .. } => "cancel",
            InputBody::Decision(_) => "decision",
        };
        self.inputs.with_label_values(&[input]).inc();
    }
}
