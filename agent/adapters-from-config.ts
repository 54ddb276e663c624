/** Creates adapters from the configuration: certificates, firewall, SSH and GPUs. */
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
import { createGatewayLink } from './access/ssh/gateway-link.ts';
import { openHostKey } from './access/ssh/host-key.ts';
import { createKeyFolders } from './access/ssh/key-folders.ts';
import { prepareSftpFolder } from './access/ssh/sftp-folder.ts';
import { type AgentConfig, isSecure } from './config.ts';
import type { Firewall } from './containers/network/firewall.ts';
import { createIptablesFirewall, hostResolvers } from './containers/network/iptables-firewall.ts';
import { chooseGpuDriver } from './gpu/choose-gpu-driver.ts';
import { readNumaNodes } from './gpu/cpu-placement.ts';
import { createGpuSource } from './gpu/gpu-lease.ts';
import { createKernelLog } from './gpu/kernel-log.ts';
import { createNvidiaSmi } from './gpu/nvidia/nvidia-smi.ts';
import { nvidiaCardsOnBus } from './gpu/pci-bus.ts';
import { createSecretFiles, type SecretFiles } from './pods/secret-files.ts';

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

/** Ports for SSH to pods: the gateway's files and host key, key folders and sftp-server. */
export async function sshPortsOf({ AGENT_HOME: agentHome }: AgentConfig, log: Log) {
  return {
    gatewayLink: createGatewayLink({ agentHome, clock: systemClock, log }),
    hostKey: openHostKey(gatewayPaths(agentHome).hostKey, systemRandom),
    keyFolders: createKeyFolders(gatewayPaths(agentHome).keys),
    sftpFolder: await sftpFolderIn(agentHome, log),
  };
}

/** Returns null and logs a warning if the host has no sftp-server. The gateway then refuses SFTP and scp. */
async function sftpFolderIn(agentHome: string, log: Log): Promise<string | null> {
  const folder = gatewayPaths(agentHome).sftp;
  const ready = await prepareSftpFolder(folder, runCommand).catch((error: unknown) => {
    log.debug({ detail: messageOf(error) }, 'copying sftp-server failed');
    return false;
  });
  if (!ready) log.warn('SFTP is unavailable: install the package openssh-sftp-server');
  return ready ? folder : null;
}

/** Files of the pods' secrets, in a folder of this executor. */
export function secretFilesOf(config: AgentConfig): SecretFiles {
  return createSecretFiles(join(config.AGENT_SECRETS_FOLDER, config.AGENT_EXECUTOR_ID));
}

/** Ports for GPUs. Calls `onHang` whenever nvidia-smi exceeds its deadline. */
export async function gpuPortsOf(config: AgentConfig, onHang: () => void) {
  const smi = createNvidiaSmi({
    clock: systemClock,
    runCommand,
    program: config.AGENT_NVIDIA_SMI,
    onHang,
  });
  const gpuDriver = await chooseGpuDriver({
    mode: config.AGENT_GPU,
    simulatedGpus: config.AGENT_SIMULATED_GPUS,
    executorId: config.AGENT_EXECUTOR_ID,
    smi,
    clock: systemClock,
    cardsOnBus: nvidiaCardsOnBus,
  });
  return {
    gpuDriver,
    gpus: createGpuSource(gpuDriver),
    gpuShare: { split: config.AGENT_GPU_SPLIT, minimum: config.AGENT_MIN_GPU_COUNT },
    kernelLog: createKernelLog(config.AGENT_KERNEL_LOG),
    numaNodes: readNumaNodes,
  };
}
