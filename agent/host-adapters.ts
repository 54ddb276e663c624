/** Creates adapters of the host from the configuration: updates, certificates, firewall, SFTP. */
import type { KeyObject } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import {
  type CertificateSource,
  chooseCertificateSource,
} from '#shared/tls/listener-certificate.ts';
import { gatewayPaths } from './access/ssh/gateway-files.ts';
import { prepareSftpFolder } from './access/ssh/sftp-folder.ts';
import { type AgentConfig, isSecure } from './config.ts';
import type { Firewall } from './containers/network/firewall.ts';
import { createIptablesFirewall, hostResolvers } from './containers/network/iptables-firewall.ts';

const IPV6_ADDRESSES = '/proc/net/if_inet6';

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
