/** Runs the agent: checks the configuration, creates the agent and starts to listen. Other commands do not load this file. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { listenOn } from '#shared/http/listen.ts';
import { createEventLoopYield, systemClock } from '#shared/runtime/clock.ts';
import { openGuardedClock } from '#shared/runtime/clock-file.ts';
import { type Environment, inspectConfig, logConfigWarnings } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { createLog, type Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { createServiceManager } from '#shared/runtime/service-manager.ts';
import { checkTables } from '#shared/runtime/sqlite.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { openIdentity } from '#shared/signing/identity.ts';
import { startTracing, type Tracing } from '#shared/telemetry/tracing.ts';
import { sshPortsIn } from './access/ssh/gateway-files.ts';
import { firewallOf } from './adapters-from-config.ts';
import { createAgentPorts } from './agent-ports.ts';
import { type Agent, createAgent } from './app.ts';
import { AGENT_CONFIG, type AgentConfig, dockerSocketOf } from './config.ts';
import { checkTlsFiles, policyOf, trustedKeysOf } from './config-files.ts';
import type { Firewall } from './containers/network/firewall.ts';
import { hasPods, openHome, STORE_FILE } from './database/database.ts';
import { claimHome, lockExecutor, readMachineIds } from './host/machine.ts';
import { openSecretKey } from './host/secret-key.ts';
import { createMetrics } from './metrics/metrics.ts';

/**
 * Time that requests and steps have to finish at shutdown, milliseconds. A step that takes longer is interrupted and
 * repeated at the next start.
 */
const SHUTDOWN_MS = 10_000;
/** Maximum age of the last reconcile pass. A pass waits only for lists of the engine, which have deadlines. */
const RECONCILED_WITHIN_MS = 60_000;
const EPHEMERAL_PORTS = '/proc/sys/net/ipv4/ip_local_port_range';

const STORE_CHECK_MS = 3_600_000;
/** Exit status that makes a service manager start the agent again. */
const STORE_DAMAGED = 1;

const NOT_ROOT =
  'not running as root: data volumes of pods are neither counted against disk limits nor backed up';

/** Resolves when the agent listens. Rejects with an error for the operator. Removes systemd's variables from `environment`. */
export async function serve(config: AgentConfig, environment: Environment): Promise<void> {
  // Checked before any file is opened.
  const policy = policyOf(config);
  const keys = trustedKeysOf(config);
  checkTlsFiles(config);
  const clock = systemClock;
  const log = createLog({ name: 'podwright-agent', level: config.AGENT_LOG_LEVEL });
  logConfigWarnings(inspectConfig(AGENT_CONFIG, environment).warnings, log);
  const tracing = await startTracing('podwright-agent', environment, { clock, log });
  const serviceManager = createServiceManager({
    environment,
    pid: process.pid,
    runCommand,
    clock,
    log,
  });
  const firewall = firewallOf(config);
  if (config.AGENT_REQUIRE_FIREWALL) await assertFirewall(firewall);
  warnAboutEphemeralPorts(config, log);
  if (process.getuid?.() !== 0) log.warn(NOT_ROOT);
  const home = openHome(config.AGENT_HOME, {
    nowMs: clock.now(),
    sshPorts: () => sshPortsIn(config.AGENT_HOME),
    openKeys() {
      openIdentity(config.AGENT_HOME, systemRandom);
      openSecretKey(config.AGENT_HOME, systemRandom);
    },
  });
  await lockExecutor(config.AGENT_EXECUTOR_ID);
  claimHome(config.AGENT_HOME, {
    present: readMachineIds(),
    hasPods: () => hasPods(home.database),
    random: systemRandom,
  });
  const socketPath = dockerSocketOf(config, environment['DOCKER_HOST']);
  const guard = openGuardedClock(config.AGENT_HOME, {
    clock: systemClock,
    random: systemRandom,
    log,
  });
  const metrics = createMetrics({ clock: guard.clock, executorId: config.AGENT_EXECUTOR_ID });
  const agent = createAgent(
    await createAgentPorts(config, {
      policy,
      keys,
      log,
      socketPath,
      firewall,
      metrics,
      database: home.database,
      guard,
    }),
  );

  const shutDown = once(async () => {
    await serviceManager.stopping();
    await guard.stop();
    await storeChecks.stop();
    await endProcess(agent, { closeHome: home.close, tracing }, log);
  });
  const storeChecks = checkStore(config.AGENT_HOME, log, () => {
    // The next start moves the store aside and builds a new one.
    process.exitCode = STORE_DAMAGED;
    shutDown();
  });
  process.on('SIGTERM', shutDown);
  process.on('SIGINT', shutDown);
  if (config.AGENT_EXIT_WITH_PARENT && process.channel) process.on('disconnect', shutDown);

  await listen(agent, config);
  agent.start();
  guard.start();
  const address = agent.server.server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  log.info({ port, version: VERSION, executor_id: config.AGENT_EXECUTOR_ID }, 'listening');
  process.send?.({ ready: true, port });
  const limits = { maxHeartbeatAgeMs: RECONCILED_WITHIN_MS };
  await serviceManager.ready({ check: agent.vitals, limits });
}

async function listen({ server, monitoring }: Agent, config: AgentConfig): Promise<void> {
  const place = { host: config.AGENT_HOST, port: config.AGENT_PORT };
  await listenOn(server, place, { host: 'AGENT_HOST', port: 'AGENT_PORT' });
  const monitoringPlace = config.AGENT_METRICS_LISTEN;
  if (monitoringPlace === undefined || monitoring === null) return;
  const name = 'AGENT_METRICS_LISTEN';
  await listenOn(monitoring, monitoringPlace, { host: name, port: name });
}

async function assertFirewall(firewall: Firewall): Promise<void> {
  await firewall.assert().catch((cause: unknown) => {
    throw new Error(`AGENT_REQUIRE_FIREWALL is set: ${messageOf(cause)}`, { cause });
  });
}

/** Pods keep running; the next start finds them by their labels. */
async function endProcess(
  agent: Agent,
  { closeHome, tracing }: { closeHome(): void; tracing: Tracing },
  log: Log,
): Promise<void> {
  log.info('shutting down; pods keep running');
  const deadline = systemClock.sleep(SHUTDOWN_MS);
  await Promise.race([agent.stop(), deadline]).catch((error: unknown) =>
    log.error({ err: error }, 'shutdown failed'),
  );
  closeHome();
  await tracing.close();
  process.exit();
}

/** Checks the store every hour, one table at a time. Calls `onDamage` once for a damaged store. */
function checkStore(home: string, log: Log, onDamage: () => void): Loop {
  const path = join(home, STORE_FILE);
  const breathe = createEventLoopYield(systemClock);
  let isFirst = true;
  return startLoop({
    clock: systemClock,
    intervalMs: STORE_CHECK_MS,
    async run(signal) {
      // The start has just checked it.
      const steps = isFirst ? null : checkTables(path);
      isFirst = false;
      let step = steps?.next();
      while (step?.done === false && !signal.aborted) {
        await breathe();
        step = steps?.next();
      }
      if (step?.done !== true || step.value === null) return;
      log.fatal(
        { detail: `${path} is damaged: ${step.value}` },
        'the store is damaged: restarting',
      );
      onDamage();
    },
    onError: (error) => log.error({ err: error }, 'the check of the store failed'),
  });
}

function once(work: () => Promise<void>): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    void work();
  };
}

/**
 * Warns if the pods' port range overlaps the ports that the kernel assigns to outgoing connections, because such a port
 * may be in use at any time.
 */
function warnAboutEphemeralPorts({ AGENT_PORT_RANGE: range }: AgentConfig, log: Log): void {
  try {
    const [low = 0, high = 0] = readFileSync(EPHEMERAL_PORTS, 'utf8').split(/\s+/).map(Number);
    if (range.first > high || range.last < low) return;
    log.warn({ range, ephemeral: { low, high } }, 'AGENT_PORT_RANGE overlaps the ephemeral ports');
  } catch (error) {
    log.debug({ detail: messageOf(error) }, 'reading the range of ephemeral ports failed');
  }
}
