/** The installation that the switcher replaces: a container, or the release tree of a service. */
import { localHost } from '#shared/http/listen.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { definedVariables } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { trustedKeysFrom } from '../identity/trusted-keys.ts';
import { createContainerInstallation } from './container-installation.ts';
import type { Replacement } from './installation.ts';
import { createReleaseTree } from './release-tree.ts';
import { PLATFORM } from './signed-image.ts';
import { type SwitcherHost, transportToAgent } from './switcher-host.ts';
import { createUpdateRequest } from './tree-installation.ts';
import { createAgentUnit, createTreeReplacement } from './tree-replacement.ts';
import { createTreeStaging } from './tree-staging.ts';

/** Node's compile cache of the agent's service, as its unit names it. */
const CACHE_FOLDER = '/var/cache/podwright-agent';

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
        root: config.AGENT_ROOT_KEYS ?? null,
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
