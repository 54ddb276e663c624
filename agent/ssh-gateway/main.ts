/** The SSH gateway's process: environment -> engine connection -> gateway. Sessions outlive the agent's restarts. */
import { systemClock } from '#shared/clock.ts';
import { ConfigError } from '#shared/config.ts';
import { createLog } from '#shared/log.ts';
import { systemRandom } from '#shared/random.ts';
import { runCommand } from '#shared/run-command.ts';
import { createServiceManager } from '#shared/service-manager/service-manager.ts';
import { VERSION } from '#shared/version.ts';
import { createExecEngine } from '../docker/exec.ts';
import { hangUpLeftovers } from '../exec/leftovers.ts';
import { CONFIG_HELP, type GatewayConfig, readConfig } from './config.ts';
import { startGateway } from './gateway.ts';

const HELP = `Usage: agent/ssh-gateway/main.ts [--help | --version]

The Podwright SSH gateway: lets renters log in to the pods of one agent. It is configured by
environment variables:

${CONFIG_HELP}
`;

/** It looks at the snapshot every second. */
const LOOK_WITHIN_MS = 60_000;

async function run(config: GatewayConfig): Promise<void> {
  const log = createLog({ name: 'podwright-ssh', level: config.SSH_LOG_LEVEL });
  const clock = systemClock;
  const serviceManager = createServiceManager({
    ...{ environment: process.env, pid: process.pid, runCommand, clock, log },
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
  process.on('SIGTERM', shutDown);
  process.on('SIGINT', shutDown);
  if (config.SSH_EXIT_WITH_PARENT && process.channel) process.on('disconnect', shutDown);
  log.info({ version: VERSION, snapshot: config.SSH_SNAPSHOT }, 'serving');
  process.send?.({ ready: true });
  await serviceManager.ready({
    look: async () => gateway.vitals(),
    bounds: { turnWithinMs: LOOK_WITHIN_MS },
  });
}

if (process.features.typescript === false)
  throw new Error('run this with Node 26: npm run ssh-gateway');

switch (process.argv[2]) {
  case undefined:
    try {
      await run(readConfig(process.env));
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      process.stderr.write(`podwright-ssh: ${error.message}\n`);
      process.exitCode = 2;
    }
    break;
  case '--version':
    process.stdout.write(`${VERSION}\n`);
    break;
  case '--help':
    process.stdout.write(HELP);
    break;
  default:
    process.stderr.write(HELP);
    process.exitCode = 2;
}
