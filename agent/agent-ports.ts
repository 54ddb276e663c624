/** Creates the agent's ports with real adapters, from the configuration. */
import { cpus, hostname, totalmem, uptime } from 'node:os';
import { join } from 'node:path';
import { readEnrolment } from '#shared/api/agent/identity.ts';
import type { GuardedClock } from '#shared/runtime/guarded-clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { systemRandom as random } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import { openIdentity } from '#shared/signing/identity.ts';
import type { TrustedKey } from '#shared/signing/request-verifier.ts';
import { requestKeys } from '#shared/updates/root-key-set.ts';
import { sshPortsIn } from './access/ssh/gateway-files.ts';
import { certificatesOf, gpuPortsOf, secretFilesOf, sshPortsOf } from './adapters-from-config.ts';
import type { AgentPorts } from './app.ts';
import { createResticVersion } from './backups/restic-command.ts';
import type { AgentConfig } from './config.ts';
import { createDockerodeEngine } from './containers/engine/dockerode-engine.ts';
import { endLeftoverTask } from './containers/engine/leftover-task.ts';
import { createRunInContainer } from './containers/engine/run-in-container.ts';
import { createSideDisk } from './host/disk-space.ts';
import { createReadHardware } from './host/hardware.ts';
import { createHostProbe, readBootId } from './host/host-probe.ts';
import { sharedCores, sharedMemory } from './host/host-share.ts';
import { createHostSources } from './host/host-sources.ts';
import { openSecretKey } from './host/secret-key.ts';
import { createAuth } from './identity/auth.ts';
import { probePort } from './leases/port.service.ts';
import { createFolderBytes, createFolderEntries } from './pods/folder-size.ts';
import type { ProviderPolicy } from './pods/provider-policy.ts';
import { keySetOf, type Trust, trustUnder } from './updates/key-trust.ts';
import { createUpdateStore } from './updates/update.store.ts';
import { updatesOf } from './updates/updates-from-config.ts';

const BYTES_PER_MIB = 1024 * 1024;
const MS_PER_SECOND = 1_000;

/** Opens the identity and the secret key in the agent's home, and starts nothing. */
export async function createAgentPorts(
  config: AgentConfig,
  options: {
    policy: ProviderPolicy;
    keys: readonly TrustedKey[];
    log: Log;
    socketPath: string;
    database: DatabaseSync;
    guard: GuardedClock;
  } & Pick<AgentPorts, 'firewall' | 'metrics'>,
): Promise<AgentPorts> {
  const { policy, keys, log, socketPath, database, firewall, metrics, guard } = options;
  const { clock } = guard;
  const { AGENT_HOME: home, AGENT_EXECUTOR_ID: executorId } = config;
  const { AGENT_HOST_SHARE: sharePercent } = config;
  const identity = openIdentity(home, random);
  const engine = createDockerodeEngine({ socketPath, clock });
  const scratchFolder = join(home, 'scratch');
  const keysUnder = (trust: Trust | null) => requestKeys(keys, keySetOf(trust));
  const { trust } = createUpdateStore(database).get();
  const auth = createAuth({
    clock,
    executorId,
    keys: keysUnder(trustUnder(config.AGENT_ROOT_KEYS ?? null, trust)),
    log,
    metrics,
    onPeerTime: guard.heardFrom,
  });
  const trustChanged = (changed: Trust | null) => auth.replaceKeys(keysUnder(changed));
  return {
    executorId,
    clock,
    guard,
    random,
    log,
    database,
    engine,
    endLeftoverTask,
    execEngine: async () =>
      (await import('./containers/engine/exec.ts')).createExecEngine({ socketPath, clock }),
    ...(await gpuPortsOf(config, () => metrics.timedOut('gpu'))),
    ...(await sshPortsOf(config, log)),
    folderBytes: createFolderBytes(runCommand),
    folderEntries: createFolderEntries(runCommand),
    runInContainer: createRunInContainer({ socketPath, clock }),
    hostProbe: createHostProbe({ clock, readHardware: createReadHardware(runCommand) }),
    hostSources: createHostSources({
      clock,
      folder: scratchFolder,
      restic: createResticVersion({ clock, runCommand, program: 'restic' }),
      sideDisk: createSideDisk({ clock, engineBytes: engine.engineDiskBytes }),
    }),
    probePort,
    auth,
    metrics,
    identity,
    readEnrolment: () => readEnrolment(home),
    certificates: certificatesOf(config, identity.privateKey),
    separateMonitoring: config.AGENT_METRICS_LISTEN !== undefined,
    gpuMetrics: config.AGENT_GPU_METRICS,
    hostname: hostname(),
    portRange: config.AGENT_PORT_RANGE,
    subnetPool: config.AGENT_POD_SUBNETS,
    firewall,
    firewallRequired: config.AGENT_REQUIRE_FIREWALL,
    busyboxPath: config.AGENT_BUSYBOX,
    sshPorts: sshPortsIn(home),
    secret: openSecretKey(home, random),
    secretFiles: secretFilesOf(config),
    imageMarks: config.AGENT_IMAGE_GC,
    buildsFolder: join(home, 'builds'),
    scratchFolder,
    updates: updatesOf(config, { keys, socketPath, trustChanged }),
    gpuProofImage: config.AGENT_GPU_PROOF_IMAGE,
    host: {
      sharePercent,
      gpuMonitors: config.AGENT_GPU_MONITORS,
      memoryBytes: sharedMemory(totalmem(), sharePercent),
      memoryReserveBytes: sharedMemory(
        config.AGENT_MEMORY_RESERVE_MIB * BYTES_PER_MIB,
        sharePercent,
      ),
      cpuCores: sharedCores(cpus().length, sharePercent),
      localRegistries: config.AGENT_ALLOW_LOCAL_REGISTRIES,
      policy,
      bootMs: clock.now() - uptime() * MS_PER_SECOND,
      bootId: readBootId(),
    },
  };
}
