/**
 * The switcher: a short-lived process of the version that is replaced, in a container of its own beside the agent's,
 * with the agent's variables and files. It holds the row of the update from SWITCHING on.
 */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '#shared/clock.ts';
import { openIdentity, ownPinOf } from '#shared/identity/identity-key.ts';
import { createLog } from '#shared/log.ts';
import { systemRandom } from '#shared/random.ts';
import { openSqlite } from '#shared/sqlite.ts';
import { pinOfCertificate } from '#shared/tls/pin.ts';
import { createSecureTransport, PLAIN_TRANSPORT, type Transport } from '#shared/tls/transport.ts';
import { type AgentConfig, dockerSocketOf, isSecure, readConfig, updateOf } from '../config.ts';
import { createDockerodeEngine } from '../docker/dockerode-engine.ts';
import { createOwnContainers } from '../docker/own-containers.ts';
import { SCHEMA, STORE_FILE } from '../store/database.ts';
import { createUpdateStore, type UpdateStore } from '../store/update.store.ts';
import { createAgentReady } from './agent-ready.ts';
import { createContainerInstallation } from './container-installation.ts';
import { createStoreCopy } from './store-copy.ts';
import { runSwitch } from './switch.run.ts';

const MS_PER_SECOND = 1_000;
const READY_WITHIN_MS = 120_000;

function transportOf(config: AgentConfig): Transport {
  if (!isSecure(config)) return PLAIN_TRANSPORT;
  const { AGENT_TLS_CERT: file, AGENT_HOME: home } = config;
  const own = ownPinOf(openIdentity(home, systemRandom).publicKey);
  const trust =
    file === undefined ? own : pinOfCertificate(new X509Certificate(readFileSync(file)));
  if (trust === null) throw new Error('the agent has no key');
  return createSecureTransport({ trust, clock: systemClock });
}

/** Opened for each look: in between, the file may be replaced by its copy. */
function withStoreIn(path: string) {
  return <T>(work: (store: UpdateStore) => T): T => {
    const database = openSqlite(path);
    try {
      return work(createUpdateStore(database));
    } finally {
      database.close();
    }
  };
}

async function run(): Promise<void> {
  const config = readConfig(process.env);
  const update = updateOf(config);
  if (update === null) throw new Error('AGENT_UPDATE_URL is not set');
  const log = createLog({ name: 'podwright-agent-switcher', level: config.AGENT_LOG_LEVEL });
  const socketPath = dockerSocketOf(config, process.env['DOCKER_HOST']);
  const docker = { socketPath, clock: systemClock };
  const executorId = config.AGENT_EXECUTOR_ID;
  const replacement = createContainerInstallation({
    ...{ name: update.container, image: update.image, executorId },
    engine: createDockerodeEngine(docker),
    containers: createOwnContainers(docker),
  });
  const storePath = join(config.AGENT_HOME, STORE_FILE);
  await runSwitch({
    ...{ clock: systemClock, log, replacement },
    withStore: withStoreIn(storePath),
    storeCopy: createStoreCopy(storePath, SCHEMA),
    isReady: createAgentReady({
      ...{ executorId, port: config.AGENT_PORT, clock: systemClock },
      scheme: isSecure(config) ? 'https' : 'http',
      transport: transportOf(config),
    }),
    probationMs: config.AGENT_UPDATE_PROBATION_S * MS_PER_SECOND,
    readyWithinMs: READY_WITHIN_MS,
  });
  await replacement.leave();
}

await run();
