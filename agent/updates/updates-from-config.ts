/**
 * Builds the ports of self-updates from the agent's configuration: installation, manifest source, login, maintenance
 * file.
 */
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RegistryAuth } from '#shared/api/agent/images.ts';
import { boundedText } from '#shared/http/bounded-text.ts';
import { type Clock, systemClock } from '#shared/runtime/clock.ts';
import { PLAIN_TRANSPORT } from '#shared/tls/transport.ts';
import { readRegistryLogin } from '#shared/updates/registry-login.ts';
import { MAX_DIGEST_BYTES } from '#shared/updates/update-manifest.ts';
import { type AgentConfig, updateOf } from '../config.ts';
import { createDockerodeEngine } from '../containers/engine/dockerode-engine.ts';
import { createOwnContainers } from '../containers/engine/own-containers.ts';
import { createContainerInstallation } from './container-installation.ts';
import { createReleaseTree } from './release-tree.ts';
import { createSignedImage, PLATFORM } from './signed-image.ts';
import { createTreeInstallation, createUpdateRequest } from './tree-installation.ts';
import type { UpdatePorts } from './update.service.ts';

const MS_PER_SECOND = 1_000;
const UNITS_FOLDER = '/etc/systemd/system';
const MANIFEST_MS = 10_000;
const MAX_TEXT_BYTES = 500;
const DEFAULT_REASON = 'paused by the file update-hold in the agent’s home';

/** Returns null if the agent does not update itself. */
export function updatesOf(
  config: AgentConfig,
  {
    keys,
    socketPath,
    trustChanged,
  }: Pick<UpdatePorts, 'keys' | 'trustChanged'> & { socketPath: string },
): UpdatePorts | null {
  const { AGENT_HOME: home, AGENT_EXECUTOR_ID: executorId } = config;
  const update = updateOf(config);
  if (update === null) return null;
  const docker = { socketPath, clock: systemClock };
  const engine = createDockerodeEngine(docker);
  const readLogin = () => updateLoginOf(config);
  const image = createSignedImage({ image: update.image, engine, readLogin });
  const { place } = update;
  return {
    image: update.image,
    platform: PLATFORM,
    keys,
    root: config.AGENT_ROOT_KEYS ?? null,
    trustChanged,
    fetchImage: image.fetch,
    installation:
      place.kind === 'tree'
        ? createTreeInstallation({
            clock: systemClock,
            folder: place.folder,
            image,
            engine,
            own: fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, ''),
            unitsFolder: UNITS_FOLDER,
            tree: createReleaseTree(place.folder),
            request: createUpdateRequest(home),
          })
        : createContainerInstallation({
            name: place.name,
            image,
            executorId,
            engine,
            containers: createOwnContainers(docker),
          }),
    readManifest: createManifestReader(update.url, systemClock),
    intervalMs: config.AGENT_UPDATE_INTERVAL_S * MS_PER_SECOND,
    maintenanceReason: createMaintenanceFile(join(home, 'update-hold')),
  };
}

/** Returns the login for the registry of new versions. Throws the problem with its file. */
export function updateLoginOf(config: AgentConfig): RegistryAuth | undefined {
  const { AGENT_UPDATE_LOGIN_FILE: file, AGENT_UPDATE_IMAGE: image } = config;
  if (file === undefined || image === undefined) return undefined;
  return readRegistryLogin(file, image, 'AGENT_UPDATE_LOGIN_FILE');
}

/**
 * Reads the response at `url`, which is not verified yet. Rejects without a response. Needs no TLS: the manifest is
 * signed.
 */
function createManifestReader(url: string, clock: Clock): () => Promise<unknown> {
  return async () => {
    const signal = clock.deadline(MANIFEST_MS);
    const headers = { accept: 'application/json' };
    const answer = await PLAIN_TRANSPORT.fetch(new URL(url), { method: 'GET', headers, signal });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return JSON.parse(await boundedText(answer, MAX_DIGEST_BYTES));
  };
}

/** Returns the text of the provider's maintenance file, which pauses updates while it exists; null without the file. */
function createMaintenanceFile(path: string): () => string | null {
  return () => {
    let file: number;
    try {
      // Opening a named pipe would block until another process writes to it.
      file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    } catch {
      return null;
    }
    try {
      const text = Buffer.alloc(MAX_TEXT_BYTES);
      return text.toString('utf8', 0, readSync(file, text)).trim() || DEFAULT_REASON;
    } finally {
      closeSync(file);
    }
  };
}
