/** The two ways in which an agent is installed, as the switcher replaces it: a container, or a release in a folder of them. */

import { localHost } from '#shared/http/listen.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { definedVariables } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { trustedKeysFrom } from '../identity/trusted-keys.ts';
import { createAgentUnit } from './agent-unit.ts';
import { createContainerInstallation } from './container-installation.ts';
import type { Replacement } from './installation.ts';
import { createReleaseTree } from './release-tree.ts';
import { PLATFORM } from './signed-image.ts';
import { type SwitchScene, transportOf } from './switch-scene.ts';
import { createUpdateRequest } from './tree-installation.ts';
import { createTreeReplacement } from './tree-replacement.ts';
import { createTreeStaging } from './tree-staging.ts';

/** Of the service's compiled sources; the agent's own is kept by the same name in its unit. */
const CACHE_FOLDER = '/var/cache/podwright-agent';

/** The side of the installation that this process acts for. */
export type Side = {
  replacement: Replacement;
  /** What is done before the row is ours. */
  prepare(): Promise<void>;
  leave(): Promise<void>;
};

export function containerSide(
  { config, engine, containers, image }: SwitchScene,
  name: string,
): Side {
  const executorId = config.AGENT_EXECUTOR_ID;
  const replacement = createContainerInstallation({
    ...{ name, image, executorId, engine, containers },
  });
  return { replacement, prepare: async () => undefined, leave: replacement.leave };
}

export function treeSide(scene: SwitchScene, folder: string): Side {
  const { config, update, containers, image, log } = scene;
  const tree = createReleaseTree(folder);
  const request = createUpdateRequest(config.AGENT_HOME);
  // Made when it is needed: what is wrong with the files that variables name is told to the agent.
  const createStaging = () =>
    createTreeStaging({
      ...{ clock: systemClock, tree, image, containers, runCommand },
      environment: definedVariables(scene.environment),
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
      host: localHost(config.AGENT_HOST),
    }),
    async prepare() {
      const { state, target, signed } = scene.withStore((store) => store.get());
      if (state !== 'STAGED' || target === null) return;
      try {
        // Without it nobody could tell whether the new version is ready.
        transportOf(config).close();
        await createStaging()(target, signed);
      } catch (error) {
        problem = messageOf(error);
        log.warn({ target, detail: problem }, 'the new version was not put in place');
      }
    },
    leave: async () => request.settle(problem),
  };
}
