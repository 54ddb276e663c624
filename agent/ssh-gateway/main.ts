/** Entry point of the SSH gateway, a separate process so that sessions survive restarts of the agent. */
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '#shared/runtime/clock.ts';
import {
  CONFIG_COMMANDS_HELP,
  definedVariables,
  exitStatusOf,
  inspectConfig,
  logConfigWarnings,
  runConfigCommand,
} from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { requireWritableFolder } from '#shared/runtime/files.ts';
import { createLog, type Log } from '#shared/runtime/log.ts';
import { startLoop } from '#shared/runtime/loop.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { createServiceManager } from '#shared/runtime/service-manager.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { hangUpLeftovers } from '../access/exec/container-process.ts';
import { createExecEngine } from '../containers/engine/exec.ts';
import { CONFIG_HELP, type GatewayConfig, readConfig, SSH_CONFIG } from './config.ts';
import { startGateway } from './gateway.ts';
import {
  createHandover,
  createSuccessorLookup,
  createTrial,
  HANDOVER_CHECK_MS,
} from './handover.ts';

const HELP = `Usage: agent/ssh-gateway/main.ts [--help | --version | --check-config | --print-config]

The Podwright SSH gateway: lets renters log in to the pods of one agent. Configuration by
environment variables:

${CONFIG_HELP}

${CONFIG_COMMANDS_HELP}
`;

/** Time since the last read of the snapshot after which the gateway counts as hung; it reads every second. */
const HEARTBEAT_TIMEOUT_MS = 60_000;

async function run(config: GatewayConfig): Promise<void> {
  const log = createLog({ name: 'podwright-ssh', level: config.SSH_LOG_LEVEL });
  const clock = systemClock;
  logConfigWarnings(inspectConfig(SSH_CONFIG, process.env).warnings, log);
  requireWritableFolder(dirname(config.SSH_SNAPSHOT), 'SSH_SNAPSHOT: its folder');
  const serviceManager = createServiceManager({
    environment: process.env,
    pid: process.pid,
    runCommand,
    clock,
    log,
  });
  const gateway = startGateway({
    snapshotPath: config.SSH_SNAPSHOT,
    host: config.SSH_HOST,
    pid: process.pid,
    engine: createExecEngine({ socketPath: config.SSH_DOCKER_SOCKET, clock }),
    hangUpLeftovers,
    clock,
    random: systemRandom,
    log,
  });
  const endProcess = async () => {
    await serviceManager.stopping();
    await gateway.stop();
  };
  const shutDown = () => {
    log.info('shutting down');
    void endProcess().finally(() => process.exit(0));
  };
  const { SSH_UPDATE_TREE: releases } = config;
  if (releases !== undefined) followReleases(releases, { gateway, log, shutDown });
  process.on('SIGTERM', shutDown);
  process.on('SIGINT', shutDown);
  if (config.SSH_EXIT_WITH_PARENT && process.channel) process.on('disconnect', shutDown);
  log.info({ version: VERSION, snapshot: config.SSH_SNAPSHOT }, 'serving');
  process.send?.({ ready: true });
  await serviceManager.ready({
    check: async () => gateway.liveness(),
    limits: { maxHeartbeatAgeMs: HEARTBEAT_TIMEOUT_MS },
  });
}

/** Ends the process once it has handed over to a newer release. */
function followReleases(
  releases: string,
  ports: { gateway: ReturnType<typeof startGateway>; log: Log; shutDown(): void },
): void {
  const { gateway, log, shutDown } = ports;
  const ownFolder = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
  const tryHandover = createHandover({
    log,
    successor: createSuccessorLookup(releases, ownFolder),
    problemOf: createTrial(runCommand, definedVariables(process.env)),
    closeIfIdle: gateway.closeIfIdle,
  });
  const loop = startLoop({
    clock: systemClock,
    intervalMs: HANDOVER_CHECK_MS,
    async run() {
      if (!(await tryHandover())) return;
      void loop.stop();
      shutDown();
    },
    onError: (error) => log.error({ err: error }, 'release check failed'),
  });
}

if (process.features.typescript === false)
  throw new Error('run the gateway with Node 26: npm run ssh-gateway');

const out = (text: string) => void process.stdout.write(text);
const error = (text: string) => void process.stderr.write(text);
const command = process.argv.slice(2).join(' ');
switch (command) {
  case '':
    try {
      await run(readConfig(process.env));
    } catch (cause) {
      error(`podwright-ssh: ${messageOf(cause)}\n`);
      process.exit(exitStatusOf(cause));
    }
    break;
  case '--check-config':
  case '--print-config': {
    const inspected = inspectConfig(SSH_CONFIG, process.env);
    process.exitCode = runConfigCommand(command, inspected, [], { out, error });
    break;
  }
  case '--version':
    out(`${VERSION}\n`);
    break;
  case '--help':
    out(HELP);
    break;
  default:
    error(`podwright-ssh: unknown command ${command}\n\n${HELP}`);
    process.exitCode = 2;
}
