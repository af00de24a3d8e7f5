//! `systole doctor`.

use super::{judge, judge_store, report};
use crate::arguments::DoctorFlags;
use crate::commands::{Context, print};
use crate::failure::{Exit, Failure};
use crate::nodes::settings::DoctorSettings;
use crate::nodes::sources;
use crate::wiring;

/// Judges the deployment that is named, else the store; fails where "durable" would be a lie.
pub(crate) async fn doctor(context: &Context, flags: &DoctorFlags) -> Result<Exit, Failure> {
    let found = sources::find(flags.bus.config.as_deref(), &context.environment, &flags.given())?;
    let (place, findings) = if found.has("nats") || found.has("monitor") {
        let settings = found.read(DoctorSettings::read)?;
        let deployment = wiring::doctor::deployment(&settings).await?;
        let place = wiring::servers::shown(&settings.bus).join(", ");
        (place, judge(&deployment))
    } else {
        let embedded = wiring::doctor::store(&context.common)?;
        (embedded.path.clone(), judge_store(&embedded))
    };
    let text =
        if flags.json { report::json(&place, &findings) } else { report::text(&place, &findings) };
    print(&text)?;
    Ok(if report::is_durable(&findings) { Exit::Done } else { Exit::Failed })
}
