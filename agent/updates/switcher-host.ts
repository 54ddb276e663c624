/** Ports of the switcher on its host: engine, store, image, and the connection to the agent. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import type { Environment } from '#shared/runtime/config.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { type DatabaseSync, openSqlite } from '#shared/runtime/sqlite.ts';
import { openIdentity, selfSignedPin } from '#shared/signing/identity.ts';
import { pinOfCertificate } from '#shared/tls/peer.ts';
import { createSecureTransport, PLAIN_TRANSPORT, type Transport } from '#shared/tls/transport.ts';
import { readRegistryLogin } from '#shared/updates/registry-login.ts';
import { type AgentConfig, dockerSocketOf, isSecure, type UpdateConfig } from '../config.ts';
import { createDockerodeEngine } from '../containers/engine/dockerode-engine.ts';
import { createOwnContainers } from '../containers/engine/own-containers.ts';
import { STORE_FILE } from '../database/database.ts';
import { createSignedImage } from './signed-image.ts';
import { createUpdateStore, type UpdateStore } from './update.store.ts';

const LOGIN_FILE = 'AGENT_UPDATE_LOGIN_FILE';

export type SwitcherHost = ReturnType<typeof createSwitcherHost>;

/** `environment`: the agent's variables. */
export function createSwitcherHost(
  config: AgentConfig,
  update: UpdateConfig,
  environment: Environment,
) {
  const socketPath = dockerSocketOf(config, environment['DOCKER_HOST']);
  const docker = { socketPath, clock: systemClock };
  const engine = createDockerodeEngine(docker);
  const { AGENT_UPDATE_LOGIN_FILE: file, AGENT_HOME: home } = config;
  const storePath = join(home, STORE_FILE);
  const withDatabase = databaseAt(storePath);
  return {
    config,
    update,
    environment,
    engine,
    storePath,
    withDatabase,
    log: createLog({ name: 'podwright-agent-switcher', level: config.AGENT_LOG_LEVEL }),
    containers: createOwnContainers(docker),
    image: createSignedImage({
      image: update.image,
      engine,
      readLogin: () =>
        file === undefined ? undefined : readRegistryLogin(file, update.image, LOGIN_FILE),
    }),
    withStore: <T>(work: (store: UpdateStore) => T): T =>
      withDatabase((database) => work(createUpdateStore(database))),
  };
}

/** Opens the database for each access, because a rollback may replace its file in between. */
function databaseAt(path: string) {
  return <T>(work: (database: DatabaseSync) => T): T => {
    const database = openSqlite(path);
    try {
      return work(database);
    } finally {
      database.close();
    }
  };
}

/**
 * Returns a transport that accepts only the key of the agent's certificate; plain HTTP if the agent serves no TLS.
 * Throws if a configured certificate cannot be read.
 */
export function transportToAgent(config: AgentConfig): Transport {
  if (!isSecure(config)) return PLAIN_TRANSPORT;
  const { AGENT_TLS_CERT: file, AGENT_HOME: home } = config;
  const ownPin = selfSignedPin(openIdentity(home, systemRandom).publicKey);
  const trust =
    file === undefined ? ownPin : pinOfCertificate(new X509Certificate(readFileSync(file)));
  if (trust === null) throw new Error('the agent has no key');
  return createSecureTransport({ trust, clock: systemClock });
}
