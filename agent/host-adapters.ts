/** Creates adapters of the host from the configuration: updates, certificates, firewall, SFTP. */
import type { KeyObject } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import type { TrustedKey } from '#shared/signing/request-verifier.ts';
import {
  type CertificateSource,
  chooseCertificateSource,
} from '#shared/tls/listener-certificate.ts';
import { gatewayPaths } from './access/ssh/gateway-files.ts';
import { prepareSftpFolder } from './access/ssh/sftp-folder.ts';
import { type AgentConfig, isSecure, updateOf } from './config.ts';
import { createDockerodeEngine } from './containers/engine/dockerode-engine.ts';
import { createOwnContainers } from './containers/engine/own-containers.ts';
import type { Firewall } from './containers/network/firewall.ts';
import { createIptablesFirewall, hostResolvers } from './containers/network/iptables-firewall.ts';
import { createContainerInstallation } from './updates/container-installation.ts';
import { createManifestReader } from './updates/manifest-reader.ts';
import { createReleaseTree } from './updates/release-tree.ts';
import { createSignedImage, PLATFORM } from './updates/signed-image.ts';
import { createTreeInstallation, createUpdateRequest } from './updates/tree-installation.ts';
import type { UpdatePorts } from './updates/update.service.ts';
import { createUpdateHold } from './updates/update-hold.ts';
import { updateLoginOf } from './updates/update-login.ts';

const MS_PER_SECOND = 1_000;
const UNITS_FOLDER = '/etc/systemd/system';
const IPV6_ADDRESSES = '/proc/net/if_inet6';

/** Null: the agent does not update itself. */
export function updatesOf(
  config: AgentConfig,
  keys: readonly TrustedKey[],
  socketPath: string,
): UpdatePorts | null {
  const { AGENT_HOME: home, AGENT_EXECUTOR_ID: executorId } = config;
  const update = updateOf(config);
  if (update === null) return null;
  const docker = { socketPath, clock: systemClock };
  const engine = createDockerodeEngine(docker);
  const readLogin = () => updateLoginOf(config);
  const image = createSignedImage({ image: update.image, engine, readLogin });
  const { place } = update;
  return {
    image: update.image,
    platform: PLATFORM,
    keys,
    installation:
      place.kind === 'tree'
        ? createTreeInstallation({
            clock: systemClock,
            folder: place.folder,
            image,
            engine,
            own: fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, ''),
            unitsFolder: UNITS_FOLDER,
            tree: createReleaseTree(place.folder),
            request: createUpdateRequest(home),
          })
        : createContainerInstallation({
            name: place.name,
            image,
            executorId,
            engine,
            containers: createOwnContainers(docker),
          }),
    readManifest: createManifestReader(update.url, systemClock),
    intervalMs: config.AGENT_UPDATE_INTERVAL_S * MS_PER_SECOND,
    heldBy: createUpdateHold(join(home, 'update-hold')),
  };
}

export function certificatesOf(
  config: AgentConfig,
  privateKey: KeyObject,
): CertificateSource | null {
  const { AGENT_TLS_CERT: certFile, AGENT_TLS_KEY: keyFile, AGENT_EXECUTOR_ID: name } = config;
  const file = join(config.AGENT_HOME, 'tls.crt');
  const own = { file, privateKey, name, clock: systemClock, random: systemRandom };
  return chooseCertificateSource(isSecure(config), { certFile, keyFile, prefix: 'AGENT' }, own);
}

export function firewallOf(config: AgentConfig): Firewall {
  return createIptablesFirewall({
    runCommand,
    allow: config.AGENT_EGRESS_ALLOW,
    resolvers: hostResolvers,
    hasIpv6: existsSync(IPV6_ADDRESSES),
  });
}

/** Returns null and logs a warning if sftp-server is missing. SFTP and scp are then refused. */
export async function sftpFolderIn(agentHome: string, log: Log): Promise<string | null> {
  const folder = gatewayPaths(agentHome).sftp;
  const ready = await prepareSftpFolder(folder, runCommand).catch((error: unknown) => {
    log.debug({ detail: messageOf(error) }, 'copying sftp-server failed');
    return false;
  });
  if (!ready) log.warn('SFTP is unavailable: install the package openssh-sftp-server');
  return ready ? folder : null;
}
