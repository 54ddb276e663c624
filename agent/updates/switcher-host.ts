/** Ports of the switcher on its host: engine, store, image, listener, and the installation that it replaces. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { localHost } from '#shared/http/listen.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { definedVariables, type Environment } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { type DatabaseSync, openSqlite } from '#shared/runtime/sqlite.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { openIdentity, selfSignedPin } from '#shared/signing/identity.ts';
import { pinOfCertificate } from '#shared/tls/peer.ts';
import { createSecureTransport, PLAIN_TRANSPORT, type Transport } from '#shared/tls/transport.ts';
import { readRegistryLogin } from '#shared/updates/registry-login.ts';
import { type AgentConfig, dockerSocketOf, isSecure, type UpdateConfig } from '../config.ts';
import { createDockerodeEngine } from '../containers/engine/dockerode-engine.ts';
import { createOwnContainers } from '../containers/engine/own-containers.ts';
import { STORE_FILE } from '../database/database.ts';
import { trustedKeysFrom } from '../identity/trusted-keys.ts';
import { createContainerInstallation } from './container-installation.ts';
import type { Replacement } from './installation.ts';
import { createReleaseTree } from './release-tree.ts';
import { createSignedImage, PLATFORM } from './signed-image.ts';
import { createUpdateRequest } from './tree-installation.ts';
import { createAgentUnit, createTreeReplacement } from './tree-replacement.ts';
import { createTreeStaging } from './tree-staging.ts';
import { createUpdateStore, type UpdateStore } from './update.store.ts';

const LOGIN_FILE = 'AGENT_UPDATE_LOGIN_FILE';
/** Node's compile cache of the agent's service, as its unit names it. */
const CACHE_FOLDER = '/var/cache/podwright-agent';

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

/** Returns a transport that accepts only the agent's own key. Throws if the agent has none. */
export function transportToAgent(config: AgentConfig): Transport {
  if (!isSecure(config)) return PLAIN_TRANSPORT;
  const { AGENT_TLS_CERT: file, AGENT_HOME: home } = config;
  const ownPin = selfSignedPin(openIdentity(home, systemRandom).publicKey);
  const trust =
    file === undefined ? ownPin : pinOfCertificate(new X509Certificate(readFileSync(file)));
  if (trust === null) throw new Error('the agent has no key');
  return createSecureTransport({ trust, clock: systemClock });
}

/** The installation that this process replaces. */
export type SwitcherInstallation = {
  replacement: Replacement;
  /** Runs before the switcher takes over the row. */
  prepare(): Promise<void>;
  /** Runs last, and may end this process. */
  leave(): Promise<void>;
};

export function containerToReplace(
  { config, engine, containers, image }: SwitcherHost,
  name: string,
): SwitcherInstallation {
  const replacement = createContainerInstallation({
    name,
    image,
    executorId: config.AGENT_EXECUTOR_ID,
    engine,
    containers,
  });
  return { replacement, prepare: async () => undefined, leave: replacement.leave };
}

export function treeToReplace(host: SwitcherHost, folder: string): SwitcherInstallation {
  const { config, update, containers, image, log } = host;
  const tree = createReleaseTree(folder);
  const request = createUpdateRequest(config.AGENT_HOME);
  // Created on use, so that the agent receives the error if its variables name invalid files.
  const createStaging = () =>
    createTreeStaging({
      clock: systemClock,
      tree,
      image,
      containers,
      runCommand,
      environment: definedVariables(host.environment),
      facts: {
        keys: trustedKeysFrom(config.AGENT_TRUSTED_KEYS, config.AGENT_KEY_SET),
        image: update.image,
        executorId: config.AGENT_EXECUTOR_ID,
        agentVersion: VERSION,
        platform: PLATFORM,
      },
    });
  let problem: string | null = null;
  return {
    replacement: createTreeReplacement({
      tree,
      unit: createAgentUnit(runCommand),
      cacheFolder: CACHE_FOLDER,
      host: localHost(config.AGENT_HOST),
    }),
    async prepare() {
      const { state, target, signed } = host.withStore((store) => store.get());
      if (state !== 'STAGED' || target === null) return;
      try {
        // Throws early: without a transport the switcher could not check whether the new version is ready.
        transportToAgent(config).close();
        await createStaging()(target, signed);
      } catch (error) {
        problem = messageOf(error);
        log.warn({ target, detail: problem }, 'staging of the new version failed');
      }
    },
    leave: async () => request.settle(problem),
  };
}
