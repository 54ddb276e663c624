# The validator's image, built by build.sh, which adds the release to the context. The root file system may be read-only.
ARG BASE=debian:bookworm-slim
FROM $BASE
# Programs that the validator calls; empty if the base image has them.
ARG PACKAGES="ca-certificates libatomic1 openssh-client"
RUN if [ -n "$PACKAGES" ]; then \
      apt-get -q update && \
      DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $PACKAGES && \
      rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log; \
    fi
RUN echo 'podwright:x:10001:10001::/var/lib/podwright-validator:/bin/false' >>/etc/passwd && \
    mkdir -p /var/lib/podwright-validator /var/cache/podwright-validator && \
    chmod 700 /var/lib/podwright-validator && \
    chown -R 10001:10001 /var/lib/podwright-validator /var/cache/podwright-validator
ADD release.tar /opt/podwright/
USER 10001:10001
# Fills the compile cache, so that the process does not load the type stripper.
ENV NODE_COMPILE_CACHE=/var/cache/podwright-validator
RUN ["/opt/podwright/node_modules/.bin/node", "/opt/podwright/validator/main.ts", "--version"]
# The gateway serves TLS on this address. Health and metrics have a separate listener without TLS.
ENV VALIDATOR_HOST=0.0.0.0 VALIDATOR_METRICS_LISTEN=0.0.0.0:9102
EXPOSE 8090 9102
VOLUME /var/lib/podwright-validator
ARG VERSION=
LABEL org.opencontainers.image.title="Podwright validator" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="$VERSION"
WORKDIR /var/lib/podwright-validator
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["/opt/podwright/node_modules/.bin/node", "-e", "fetch(`http://127.0.0.1:${process.env.VALIDATOR_METRICS_LISTEN.split(':').at(-1)}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# A command of the program, such as `hotkey`, follows the image's name.
ENTRYPOINT ["/opt/podwright/node_modules/.bin/node", "/opt/podwright/validator/main.ts"]
