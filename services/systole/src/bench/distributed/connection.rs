//! A client's way to the servers of a measurement.

use std::time::Duration;

use crate::arguments::BenchServers;
use crate::failure::Failure;
use crate::nodes::kill::KillSwitch;
use crate::nodes::settings::{BusLogin, BusSettings, RedisSettings};
use crate::wiring::servers::Servers;

/// How long servers may take to be there.
const START: Duration = Duration::from_secs(20);

/// Plain settings for servers on this machine.
pub(crate) fn settings(servers: &BenchServers) -> BusSettings {
    BusSettings {
        servers: vec![servers.nats.clone()],
        login: BusLogin::None,
        root_certificates: None,
        require_tls: false,
        redis: Some(RedisSettings {
            address: servers.redis.clone(),
            user: None,
            password: None,
            root_certificates: None,
        }),
        partitions: servers.partitions,
        replicas: 1,
        ack_wait: Duration::from_secs(6),
        wait: START,
    }
}

/// Connects.
pub(crate) async fn connect(servers: &BenchServers) -> Result<Servers, Failure> {
    Servers::connect(&settings(servers), "bench", &KillSwitch::default()).await
}
