# No engine builds this in CI: docs/distributed.md says what is checked.
# The one program with every subcommand; docker-compose.yml starts it as gateway, planner, worker and model.
FROM rust:1.95.0-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --locked --release --package systole

FROM debian:bookworm-slim
# Certificates for models and tools behind TLS; wget for health checks.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates wget \
    && rm -rf /var/lib/apt/lists/*
# Folders that volumes are mounted on belong to the user: a fresh volume takes over the owner.
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/systole systole \
    && install --directory --owner systole /var/lib/systole/demo
COPY --from=build /src/target/release/systole /usr/local/bin/systole
USER systole
WORKDIR /var/lib/systole
ENTRYPOINT ["systole"]
