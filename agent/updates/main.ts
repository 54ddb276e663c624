/**
 * The switcher: a short-lived process of the version that is replaced, with the agent's variables and files, in a container of
 * its own beside the agent's or as podwright-agent-update.service. It holds the row of the update from SWITCHING on; for a
 * tree it puts the new release in place before.
 */
import { systemClock } from '#shared/runtime/clock.ts';
import { isSecure, readConfig, updateOf } from '../config.ts';
import { SCHEMA } from '../database/database.ts';
import { createPodStore } from '../pods/pod.store.ts';
import { createAgentReady } from './agent-ready.ts';
import { createLostPods } from './lost-pods.ts';
import { createStoreCopy } from './store-copy.ts';
import { runSwitch } from './switch.run.ts';
import { createSwitchScene, transportOf } from './switch-scene.ts';
import { containerSide, treeSide } from './switch-sides.ts';

const MS_PER_SECOND = 1_000;
const READY_WITHIN_MS = 120_000;

async function run(): Promise<void> {
  const config = readConfig(process.env);
  const update = updateOf(config);
  if (update === null) throw new Error('AGENT_UPDATE_URL is not set');
  const scene = createSwitchScene(config, update, process.env);
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
