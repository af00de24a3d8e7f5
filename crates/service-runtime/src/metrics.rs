//! Metrics of one service, made and registered in one go. Names and labels are constants of the
//! service's one file of definitions, so what is wrong with them is found by its first test.

use prometheus::core::Collector;
use prometheus::{
    Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

/// Makes metrics with one prefix. Each service has its own registry, so that several fit into one
/// process.
#[derive(Debug)]
pub struct Maker {
    prefix: &'static str,
    registry: Registry,
}

impl Maker {
    /// For a service: its metrics are called `systole_<service>_…`.
    pub fn new(service: &'static str) -> Self {
        Self { prefix: service, registry: Registry::new() }
    }

    /// Where the metrics are gathered.
    pub fn registry(&self) -> Registry {
        self.registry.clone()
    }

    /// Counts up.
    pub fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.keep(IntCounter::with_opts(self.opts(name, help)))
    }

    /// Counts up, by labels.
    pub fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.keep(IntCounterVec::new(self.opts(name, help), labels))
    }

    /// Goes up and down, in whole numbers.
    pub fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.keep(IntGauge::with_opts(self.opts(name, help)))
    }

    /// Goes up and down, in whole numbers, by labels.
    pub fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.keep(IntGaugeVec::new(self.opts(name, help), labels))
    }

    /// Goes up and down.
    pub fn amount(&self, name: &str, help: &str) -> Gauge {
        self.keep(Gauge::with_opts(self.opts(name, help)))
    }

    /// Sorts values into buckets.
    pub fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        let opts = HistogramOpts::from(self.opts(name, help)).buckets(buckets.to_vec());
        self.keep(Histogram::with_opts(opts))
    }

    /// Sorts values into buckets, by labels.
    pub fn histograms(
        &self,
        name: &str,
        help: &str,
        buckets: &[f64],
        labels: &[&str],
    ) -> HistogramVec {
        let opts = HistogramOpts::from(self.opts(name, help)).buckets(buckets.to_vec());
        self.keep(HistogramVec::new(opts, labels))
    }

    fn opts(&self, name: &str, help: &str) -> Opts {
        Opts::new(format!("systole_{}_{name}", self.prefix), help)
    }

    fn keep<T: Collector + Clone + 'static>(&self, made: prometheus::Result<T>) -> T {
        let metric = made.unwrap_or_else(|error| unreachable!("a constant name: {error}"));
        if let Err(error) = self.registry.register(Box::new(metric.clone())) {
            unreachable!("each name is made once: {error}");
        }
        metric
    }
}
