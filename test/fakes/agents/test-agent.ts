/** A real agent in memory with the ports (adapters) that the test passes. Requests need no signature. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { identityFrom } from '#shared/signing/identity.ts';
import { createSshKeyPair } from '#shared/signing/openssh-key.ts';
import type { GatewayLink } from '../../../agent/access/ssh/gateway-link.ts';
import type { KeyFolders } from '../../../agent/access/ssh/key-folders.ts';
import { type Agent, type AgentPorts, createAgent } from '../../../agent/app.ts';
import { createExecEngine } from '../../../agent/containers/engine/exec.ts';
import type { Firewall } from '../../../agent/containers/network/firewall.ts';
import { openDatabase } from '../../../agent/database/database.ts';
import type { GpuSource } from '../../../agent/gpu/gpu-lease.ts';
import { createSimulatedDriver } from '../../../agent/gpu/simulated-gpus.ts';
import { hardwareFrom } from '../../../agent/host/hardware.ts';
import { createHostProbe } from '../../../agent/host/host-probe.ts';
import { createMetrics } from '../../../agent/metrics/metrics.ts';
import { createFolderBytes, createFolderEntries } from '../../../agent/pods/folder-size.ts';
import { NO_POLICY } from '../../../agent/pods/provider-policy.ts';
import { createSecretFiles } from '../../../agent/pods/secret-files.ts';
import { KERNEL_SOURCES } from '../../fixtures/host-inventory.ts';

/** First address of the pods' subnets, 10.204.0.0: outside the address pools of real agents and of other tests. */
const TEST_POOL = 0x0a_cc_00_00;

/** Folder for the secrets of pods, in memory as on hosts. The agent creates the folder with the first secret. */
export const TEST_SECRETS = '/dev/shm/podwright-test-secrets';

/** Hardware of a host that reports nothing about its hardware. */
export const NO_HARDWARE = hardwareFrom({});

/** A small host that booted at the epoch. */
export const TEST_HOST: AgentPorts['host'] = {
  sharePercent: 100,
  gpuMonitors: [],
  memoryBytes: 2 ** 33,
  memoryReserveBytes: 2 ** 30,
  cpuCores: 2,
  localRegistries: true,
  policy: NO_POLICY,
  bootMs: 0,
  bootId: 'test',
};

/** Creates the agent. Ports that most tests do not set are optional. */
export function createTestAgent(
  ports: Partial<AgentPorts> & Pick<AgentPorts, 'engine' | 'clock'>,
): Agent {
  const { clock } = ports;
  const executorId = ports.executorId ?? systemRandom.uuid();
  return createAgent({
    executorId,
    gpuDriver: createSimulatedDriver(executorId, []),
    hostProbe: createHostProbe({ clock, readHardware: async () => NO_HARDWARE }),
    hostSources: async () => KERNEL_SOURCES,
    metrics: createMetrics({ clock, executorId }),
    random: systemRandom,
    log: createLog({ name: 'test-agent', level: 'silent' }),
    database: openDatabase(':memory:'),
    sshPorts: {},
    gpus: fakeGpus([]),
    endLeftoverTask: async () => false,
    gpuShare: { split: 'any', minimum: 0 },
    kernelLog: { read: () => [], close: () => undefined },
    numaNodes: async () => [],
    folderBytes: createFolderBytes(runCommand),
    folderEntries: createFolderEntries(runCommand),
    runInContainer: () =>
      Promise.reject(new Error('the test agent cannot run commands in containers')),
    execEngine: async () => createExecEngine({ socketPath: '/var/run/docker.sock', clock }),
    probePort: async () => true,
    hostKey: createSshKeyPair(systemRandom, 'test').privateKeyPem,
    keyFolders: NO_KEY_FOLDERS,
    identity: identityFrom(systemRandom.bytes(32)),
    readEnrolment: () => null,
    certificates: null,
    separateMonitoring: false,
    gpuMetrics: 'nvidia',
    hostname: 'test-host',
    auth: {
      replaceKeys: () => undefined,
      onRequest: async () => undefined,
      verifyBody: async () => undefined,
    },
    updates: null,
    gatewayLink: NO_GATEWAY,
    sftpFolder: null,
    portRange: { first: 20_000, last: 20_019 },
    subnetPool: { base: TEST_POOL, prefix: 16 },
    firewall: openFirewall(),
    firewallRequired: false,
    busyboxPath: '/bin/busybox',
    host: TEST_HOST,
    secret: new Uint8Array(32).fill(5),
    secretFiles: createSecretFiles(join(TEST_SECRETS, executorId)),
    imageMarks: { start: 99, stop: 98 },
    // The folder is created with the first build.
    buildsFolder: join(tmpdir(), `podwright-builds-${executorId}`),
    scratchFolder: join(tmpdir(), `podwright-scratch-${executorId}`),
    gpuProofImage: 'podwright.local/none:1',
    ...ports,
  });
}

/** A firewall that changes nothing on the host and reports success for every call. */
export function openFirewall(bridgePrefix = 'pw'): Firewall {
  return { bridgePrefix, assert: async () => ({ drift: 0 }), remove: async () => undefined };
}
/** Adds no keys: for pods with their own SSH server. */
export const NO_KEY_FOLDERS: KeyFolders = {
  write: (podId) => `/nowhere/${podId}`,
  retain: () => undefined,
};

/** A gateway that does not listen: pods never become ready for SSH. */
export const NO_GATEWAY: GatewayLink = {
  publish: () => undefined,
  statusOf: () => null,
  traffic: () => null,
  follow: () => ({ stop: async () => undefined }),
};

/** GPUs without hardware; a process runs on each GPU in `busy`. */
export function fakeGpus(
  uuids: readonly string[],
  busy: ReadonlySet<string> = new Set(),
): GpuSource {
  return {
    listGpus: async () => uuids.map((uuid) => ({ uuid, pci_bus_id: null, mig: null })),
    isFree: async (uuid) => !busy.has(uuid),
    gpuMode: () => (uuids.length > 0 ? 'simulated' : 'none'),
  };
}

/** A valid spec that runs the built-in image. */
export function podSpec(change: Partial<PodSpecInput> = {}): PodSpecInput {
  return {
    generation: 1,
    image: { reference: 'podwright.local/base:1' },
    internal_ports: [8000],
    limits: { cpu_cores: 0.5, memory_bytes: 2 ** 26, shm_bytes: 2 ** 20, pids: 64 },
    stop_grace_seconds: 5,
    ...change,
  };
}

/** Number of containers and networks without a pod, as the agent's inventory reports it. */
export async function orphansOf(agent: Agent): Promise<number> {
  await agent.core.orphans.runOnce();
  return agent.core.orphans.list().length;
}
