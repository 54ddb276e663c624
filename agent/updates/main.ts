/**
 * The switcher: a short-lived process of the version that is replaced, with the agent's variables and files, in a container of
 * its own beside the agent's or as podwright-agent-update.service. It holds the row of the update from SWITCHING on; for a
 * tree it puts the new release in place before.
 */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '#shared/clock.ts';
import { definedIn } from '#shared/config.ts';
import { messageOf } from '#shared/errors.ts';
import { openIdentity, ownPinOf } from '#shared/identity/identity-key.ts';
import { createLog } from '#shared/log.ts';
import { systemRandom } from '#shared/random.ts';
import { runCommand } from '#shared/run-command.ts';
import { type DatabaseSync, openSqlite } from '#shared/sqlite.ts';
import { pinOfCertificate } from '#shared/tls/pin.ts';
import { createSecureTransport, PLAIN_TRANSPORT, type Transport } from '#shared/tls/transport.ts';
import { readRegistryLogin } from '#shared/updates/registry-login.ts';
import { VERSION } from '#shared/version.ts';
import { trustedKeysFrom } from '../auth/key-set-file.ts';
import {
  type AgentConfig,
  dockerSocketOf,
  isSecure,
  readConfig,
  type UpdateConfig,
  updateOf,
} from '../config.ts';
import { createDockerodeEngine } from '../docker/dockerode-engine.ts';
import { createOwnContainers } from '../docker/own-containers.ts';
import { SCHEMA, STORE_FILE } from '../store/database.ts';
import { createPodStore } from '../store/pod.store.ts';
import { createUpdateStore, type UpdateStore } from '../store/update.store.ts';
import { createAgentReady } from './agent-ready.ts';
import { createAgentUnit } from './agent-unit.ts';
import { createContainerInstallation } from './container-installation.ts';
import type { Replacement } from './installation.ts';
import { createLostPods } from './lost-pods.ts';
import { createReleaseTree } from './release-tree.ts';
import { createSignedImage, PLATFORM } from './signed-image.ts';
import { createStoreCopy } from './store-copy.ts';
import { runSwitch } from './switch.run.ts';
import { createUpdateRequest } from './tree-installation.ts';
import { createTreeReplacement } from './tree-replacement.ts';
import { createTreeStaging } from './tree-staging.ts';

const MS_PER_SECOND = 1_000;
const READY_WITHIN_MS = 120_000;
const LOGIN_FILE = 'AGENT_UPDATE_LOGIN_FILE';
/** Of the service's compiled sources; the agent's own is kept by the same name in its unit. */
const CACHE_FOLDER = '/var/cache/podwright-agent';

/** The side of the installation that this process acts for. */
type Side = {
  replacement: Replacement;
  /** What is done before the row is ours. */
  prepare(): Promise<void>;
  leave(): Promise<void>;
};

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
function inDatabase(path: string) {
  return <T>(work: (database: DatabaseSync) => T): T => {
    const database = openSqlite(path);
    try {
      return work(database);
    } finally {
      database.close();
    }
  };
}

type Scene = ReturnType<typeof sceneOf>;

/** What both kinds of installations are made of. */
function sceneOf(config: AgentConfig, update: UpdateConfig) {
  const docker = {
    ...{ socketPath: dockerSocketOf(config, process.env['DOCKER_HOST']), clock: systemClock },
  };
  const engine = createDockerodeEngine(docker);
  const { AGENT_UPDATE_LOGIN_FILE: file, AGENT_HOME: home } = config;
  const storePath = join(home, STORE_FILE);
  const withDatabase = inDatabase(storePath);
  return {
    ...{ config, update, engine, storePath, withDatabase },
    log: createLog({ name: 'podwright-agent-switcher', level: config.AGENT_LOG_LEVEL }),
    containers: createOwnContainers(docker),
    image: createSignedImage({
      ...{ image: update.image, engine },
      readLogin: () =>
        file === undefined ? undefined : readRegistryLogin(file, update.image, LOGIN_FILE),
    }),
    withStore: <T>(work: (store: UpdateStore) => T): T =>
      withDatabase((database) => work(createUpdateStore(database))),
  };
}

function containerSide({ config, engine, containers, image }: Scene, name: string): Side {
  const executorId = config.AGENT_EXECUTOR_ID;
  const replacement = createContainerInstallation({
    ...{ name, image, executorId, engine, containers },
  });
  return { replacement, prepare: async () => undefined, leave: replacement.leave };
}

function treeSide(scene: Scene, folder: string): Side {
  const { config, update, containers, image, log } = scene;
  const tree = createReleaseTree(folder);
  const request = createUpdateRequest(config.AGENT_HOME);
  // Made when it is needed, while the agent runs: the files that variables name may be credentials of its service.
  const createStaging = () =>
    createTreeStaging({
      ...{ clock: systemClock, tree, image, containers, runCommand },
      environment: definedIn(process.env),
      facts: {
        keys: trustedKeysFrom(config.AGENT_TRUSTED_KEYS, config.AGENT_KEY_SET),
        ...{ image: update.image, executorId: config.AGENT_EXECUTOR_ID },
        ...{ agentVersion: VERSION, platform: PLATFORM },
      },
    });
  let problem: string | null = null;
  return {
    replacement: createTreeReplacement({
      ...{ tree, unit: createAgentUnit(runCommand), cacheFolder: CACHE_FOLDER },
      host: hostOf(config.AGENT_HOST),
    }),
    async prepare() {
      const { state, target, signed } = scene.withStore((store) => store.get());
      if (state !== 'STAGED' || target === null) return;
      try {
        await createStaging()(target, signed);
      } catch (error) {
        problem = messageOf(error);
        log.warn({ target, detail: problem }, 'the new version was not put in place');
      }
    },
    leave: async () => request.settle(problem),
  };
}

/** Where a listener of this host can be asked. */
function hostOf(listener: string): string {
  if (listener === '0.0.0.0' || listener === '::') return '127.0.0.1';
  return listener.includes(':') ? `[${listener}]` : listener;
}

async function run(): Promise<void> {
  const config = readConfig(process.env);
  const update = updateOf(config);
  if (update === null) throw new Error('AGENT_UPDATE_URL is not set');
  const scene = sceneOf(config, update);
  const { log, engine, storePath, withDatabase, withStore } = scene;
  const { place } = update;
  const side =
    place.kind === 'tree' ? treeSide(scene, place.folder) : containerSide(scene, place.name);
  const executorId = config.AGENT_EXECUTOR_ID;
  await side.prepare();
  await runSwitch({
    ...{ clock: systemClock, log, withStore, replacement: side.replacement },
    storeCopy: createStoreCopy(storePath, SCHEMA),
    isReady: createAgentReady({
      ...{ executorId, port: config.AGENT_PORT, clock: systemClock },
      scheme: isSecure(config) ? 'https' : 'http',
      openTransport: () => transportOf(config),
    }),
    lostPods: createLostPods({
      ...{ executorId, engine },
      readPods: () => withDatabase((database) => createPodStore(database).list()),
    }),
    probationMs: config.AGENT_UPDATE_PROBATION_S * MS_PER_SECOND,
    readyWithinMs: READY_WITHIN_MS,
  });
  await side.leave();
}

await run();
