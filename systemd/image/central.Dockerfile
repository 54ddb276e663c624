# The central API's image, built by build.sh, which adds the release to the context. The root file system may be read-only.
ARG BASE=debian:bookworm-slim
FROM $BASE
# Programs that the central API calls; empty if the base image has them.
ARG PACKAGES="ca-certificates libatomic1 restic"
RUN if [ -n "$PACKAGES" ]; then \
      apt-get -q update && \
      DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $PACKAGES && \
      rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log; \
    fi
RUN echo 'podwright:x:10001:10001::/var/lib/podwright-central:/bin/false' >>/etc/passwd && \
    mkdir -p /var/lib/podwright-central /var/cache/podwright-central && \
    chmod 700 /var/lib/podwright-central && \
    chown -R 10001:10001 /var/lib/podwright-central /var/cache/podwright-central
ADD release.tar /opt/podwright/
USER 10001:10001
# Fills the compile cache, so that the process does not load the type stripper.
ENV NODE_COMPILE_CACHE=/var/cache/podwright-central
RUN ["/opt/podwright/node_modules/.bin/node", "/opt/podwright/validator/central/main.ts", "--version"]
# A load balancer in front of the container terminates TLS.
ENV CENTRAL_HOST=0.0.0.0
EXPOSE 8000
VOLUME /var/lib/podwright-central
ARG VERSION=
LABEL org.opencontainers.image.title="Podwright central API" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="$VERSION"
WORKDIR /var/lib/podwright-central
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["/opt/podwright/node_modules/.bin/node", "-e", "fetch(`http://127.0.0.1:${process.env.CENTRAL_PORT ?? 8000}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# A command of the program, such as `hotkey`, follows the image's name.
ENTRYPOINT ["/opt/podwright/node_modules/.bin/node", "/opt/podwright/validator/central/main.ts"]
