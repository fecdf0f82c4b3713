FROM rust:1.95-slim-bookworm AS build
# SQLite is compiled from source; so are the parts of TLS that are not Rust.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends build-essential ca-certificates \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY benches benches
COPY src src
RUN cargo build --locked --release --bin artifactd && strip target/release/artifactd && mkdir /var/lib/artifactd

# Nothing is installed, and nothing is written: it runs with a read-only root file system.
FROM debian:bookworm-slim
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/target/release/artifactd /usr/local/bin/artifactd
# For an embedded ledger: a volume that is mounted here begins as this user's.
COPY --from=build --chown=10001:10001 /var/lib/artifactd /var/lib/artifactd
USER 10001:10001
WORKDIR /var/lib/artifactd
ENV ARTIFACTD_LISTEN=0.0.0.0:8080 \
    ARTIFACTD_LOG__FORMAT=json
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=4s --start-period=10s CMD ["artifactd", "healthcheck"]
ENTRYPOINT ["artifactd"]
CMD ["serve"]
