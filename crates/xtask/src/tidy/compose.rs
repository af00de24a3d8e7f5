//! docker-compose.yml says what the rest of the project says: images at one version each, and no
//! variable that nobody explains.

use super::{Problem, TextFile};
use crate::setup::NATS;
use crate::up::FILE;
use crate::up::compose::{Compose, Service};

/// Where a deployment's variables are explained.
const PAGE: &str = "docs/distributed.md";

/// Checks the file, once there is one.
pub fn check(files: &[TextFile]) -> Vec<Problem> {
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| &file.text);
    let Some(file) = text(FILE) else { return Vec::new() };
    let compose = match Compose::parse(file) {
        Ok(compose) => compose,
        Err(error) => {
            let fix = "write it so that `cargo xtask up` can do it, or teach `up` the key";
            return vec![Problem::in_file(FILE, format!("{error:#}"), fix)];
        }
    };
    let page = text(PAGE).map_or("", String::as_str);
    let services = compose.services.iter();
    services.flat_map(|(name, service)| check_service(name, service, page)).collect()
}

fn check_service(name: &str, service: &Service, page: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let (image, tag) = service.image.split_once(':').unwrap_or((&service.image, ""));
    let expected = match image {
        "systole" => Some(env!("CARGO_PKG_VERSION")),
        "nats" => Some(NATS.version()),
        _ => None,
    };
    let is_pinned = tag.contains(|c: char| c.is_ascii_digit());
    if !is_pinned || expected.is_some_and(|version| !is_version(tag, version)) {
        let wrong = format!("{name} has the image `{}`", service.image);
        let fix = expected.map_or_else(
            || "name one version".to_owned(),
            |version| format!("name version {version}, as elsewhere in the project"),
        );
        problems.push(Problem::in_file(FILE, wrong, &fix));
    }
    let unexplained = service.environment.keys().filter(|variable| {
        variable.starts_with("SYSTOLE_") && !page.contains(&format!("`{variable}`"))
    });
    problems.extend(unexplained.map(|variable| {
        let wrong = format!("{name} sets `{variable}`, which {PAGE} does not explain");
        Problem::in_file(FILE, wrong, "correct the name, or explain it")
    }));
    problems
}

/// The version itself, or a flavour of it such as `2.15.1-alpine`.
fn is_version(tag: &str, version: &str) -> bool {
    tag.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, wrongs};
    use super::*;

    fn found(image: &str, variable: &str) -> Vec<String> {
        let text = format!(
            "name: a\nservices:\n  it:\n    image: {image}\n    environment: {{ {variable}: x }}\n    \
             healthcheck: {{ test: [CMD, \"true\"], interval: 1s, timeout: 1s, retries: 1 }}\n\
             volumes: {{}}\n"
        );
        wrongs(&check(&[file(FILE, &text), file(PAGE, "| `SYSTOLE_NATS` |")]))
    }

    #[test]
    fn images_have_the_versions_of_the_project() {
        let pinned = format!("nats:{}-alpine", NATS.version());
        for good in [pinned.as_str(), concat!("systole:", env!("CARGO_PKG_VERSION")), "redis:7.2.5"]
        {
            assert_eq!(found(good, "SYSTOLE_NATS"), Vec::<String>::new(), "{good}");
        }
        for bad in ["nats:2.9.0", "systole:9.9.9", "redis", "redis:latest"] {
            let expected = format!("{FILE}: it has the image `{bad}`");
            assert_eq!(found(bad, "SYSTOLE_NATS"), [expected]);
        }
    }

    #[test]
    fn a_variable_that_nobody_explains_is_named() {
        let wrong = "it sets `SYSTOLE_NAST`, which docs/distributed.md does not explain";
        assert_eq!(found("redis:7.2.5", "SYSTOLE_NAST"), [format!("{FILE}: {wrong}")]);
        assert_eq!(found("redis:7.2.5", "OTHER"), Vec::<String>::new());
    }

    #[test]
    fn a_file_that_up_cannot_do_is_named() {
        assert_eq!(wrongs(&check(&[file(FILE, "services: 7\n")])).len(), 1);
        assert_eq!(check(&[]), []);
    }
}
