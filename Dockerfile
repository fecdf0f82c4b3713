FROM rust:1.95-slim-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends build-essential \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY src src
RUN cargo build --locked --release

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/artifactd --create-home artifactd
COPY --from=build /src/target/release/artifactd /usr/local/bin/artifactd
USER artifactd
WORKDIR /var/lib/artifactd
ENV ARTIFACTD_LISTEN=0.0.0.0:8080 \
    ARTIFACTD_LOG__FORMAT=json
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=4s --start-period=10s CMD ["artifactd", "healthcheck"]
ENTRYPOINT ["artifactd"]
CMD ["serve"]
