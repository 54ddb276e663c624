/**
 * The switcher: a short-lived process of the old version, with the agent's variables and files. It runs in a container
 * beside the agent's, or as podwright-agent-update.service. It writes the row of the update from SWITCHING on. With a
 * tree of releases it also unpacks the new release before that.
 */
import { systemClock } from '#shared/runtime/clock.ts';
import { isSecure, readConfig, updateOf } from '../config.ts';
import { SCHEMA } from '../database/database.ts';
import { createPodStore } from '../pods/pod.store.ts';
import { createAgentReady, createLostPods } from './probation.ts';
import { runSwitcher } from './switcher.ts';
import { createSwitcherHost, transportToAgent } from './switcher-host.ts';
import { containerToReplace, treeToReplace } from './switcher-installation.ts';
import { createStoreCopy } from './update.store.ts';

const MS_PER_SECOND = 1_000;
const READY_WITHIN_MS = 120_000;

async function run(): Promise<void> {
  const config = readConfig(process.env);
  const update = updateOf(config);
  if (update === null) throw new Error('AGENT_UPDATE_URL is not set');
  const host = createSwitcherHost(config, update, process.env);
  const { log, engine, storePath, withDatabase, withStore } = host;
  const { place } = update;
  const installation =
    place.kind === 'tree'
      ? treeToReplace(host, place.folder)
      : containerToReplace(host, place.name);
  const executorId = config.AGENT_EXECUTOR_ID;
  await installation.prepare();
  await runSwitcher({
    clock: systemClock,
    log,
    withStore,
    replacement: installation.replacement,
    storeCopy: createStoreCopy(storePath, SCHEMA),
    isReady: createAgentReady({
      executorId,
      port: config.AGENT_PORT,
      clock: systemClock,
      scheme: isSecure(config) ? 'https' : 'http',
      openTransport: () => transportToAgent(config),
    }),
    lostPods: createLostPods({
      executorId,
      engine,
      readPods: () => withDatabase((database) => createPodStore(database).list()),
    }),
    probationMs: config.AGENT_UPDATE_PROBATION_S * MS_PER_SECOND,
    readyWithinMs: READY_WITHIN_MS,
  });
  await installation.leave();
}

await run();
