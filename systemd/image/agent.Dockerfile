# The agent's image. It can run as a container; an installation by systemd/install.sh copies /opt/podwright from it as its next
# release. Built by build.sh, which adds the release to the context.
ARG BASE=debian:bookworm-slim
FROM $BASE
# Programs that the agent calls; empty if the base image has them.
ARG PACKAGES="busybox-static ca-certificates iptables libatomic1 openssh-sftp-server restic util-linux"
RUN if [ -n "$PACKAGES" ]; then \
      apt-get -q update && \
      DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $PACKAGES && \
      rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log; \
    fi
ADD release.tar /opt/podwright/
# Fills the compile cache, so that the agent does not load the type stripper.
ENV NODE_COMPILE_CACHE=/var/cache/podwright-agent
RUN ["/opt/podwright/node_modules/.bin/node", "--max-semi-space-size=2", "--optimize-for-size", "/opt/podwright/agent/main.ts", "--version"]
ARG VERSION=
LABEL org.opencontainers.image.title="Podwright agent" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="$VERSION"
WORKDIR /var/lib/podwright
CMD ["/opt/podwright/node_modules/.bin/node", "--max-semi-space-size=2", "--optimize-for-size", "/opt/podwright/agent/main.ts"]
