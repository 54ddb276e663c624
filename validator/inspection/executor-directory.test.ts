import { expect, it } from 'vitest';
import { ApiError } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { factsOf } from '../../test/fixtures/check-facts.ts';
import type { CentralClient } from '../central-client.ts';
import { createExecutorDirectory } from './executor-directory.ts';

it('returns the last executor list, with unknown pods, while the central API is unavailable', async () => {
  const { executor } = factsOf({ podIds: [] });
  let isDown = false;
  const central: CentralClient = {
    ...({} as CentralClient),
    async listExecutors() {
      if (isDown) throw new ApiError('upstream_unavailable', 'no answer');
      return [executor];
    },
  };
  const log = createLog({ name: 'test', level: 'silent' });
  const directory = createExecutorDirectory({ central, clock: createManualClock(), log });
  const podIds = async () => {
    expect(await directory.ids()).toEqual(new Set([executor.id]));
    return (await directory.find(executor.id)).pod_ids;
  };
  expect(directory.state()).toBe('not requested yet');
  expect(await podIds()).toEqual([]);
  expect(directory.state()).toBe('answers');
  isDown = true;
  expect(await podIds()).toBeNull();
  expect(() => directory.state()).toThrow('no answer');
  isDown = false;
  expect(await podIds()).toEqual([]);
  expect(directory.state()).toBe('answers');
});

it('reports changed listings once, and ignores rentals', async () => {
  const { executor } = factsOf({ podIds: [] });
  let listed = executor;
  const central: CentralClient = {
    ...({} as CentralClient),
    listExecutors: async () => [listed],
  };
  const log = createLog({ name: 'test', level: 'silent' });
  const directory = createExecutorDirectory({ central, clock: createManualClock(), log });
  const taken: string[][] = [];
  for (const now of [
    executor,
    { ...executor, rented: true },
    { ...executor, executor_ip_port: '7' },
  ]) {
    listed = now;
    await directory.ids();
    taken.push(directory.drainChanged());
  }
  expect([taken, directory.drainChanged()]).toEqual([[[], [], [executor.id]], []]);
});
