import { expect, it } from 'vitest';
import { type PortCheckRequest, portAnswer } from '#shared/api/agent/host-checks.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { checkRun } from '../../test/fixtures/check-run.ts';
import { checkPorts } from './port-check.ts';

const FIRST = 20_000;

/** An agent that accepts a limited number of ports at once, from a range of `size`. */
function scene(size: number, takes: number | ApiError) {
  const { facts } = checkRun({ atMs: 1_000 });
  if (facts.inventory === null) throw new Error('no inventory');
  const ports = { first: FIRST, last: FIRST + size - 1, free: size };
  const tiers: number[] = [];
  let last: PortCheckRequest | null = null;
  const [busy, most] = [{ now: 0 }, { seen: 0 }];
  const client = {
    async checkPorts(request: PortCheckRequest) {
      tiers.push(request.ports.length);
      last = request;
      if (takes instanceof ApiError) throw takes;
      if (request.ports.length > takes) throw new ApiError('validation_error', 'too many');
      return { opened: request.ports };
    },
  };
  const readPort = async (_: string, port: number) => {
    busy.now += 1;
    most.seen = Math.max(most.seen, busy.now);
    await Promise.resolve();
    busy.now -= 1;
    if (last === null || port === last.ports[0]) throw new Error('shut');
    return portAnswer(last, port);
  };
  const deps = { client, clock: createManualClock(), random: systemRandom, readPort };
  const inventory = { ...facts.inventory, ports };
  return { tiers, most, check: () => checkPorts(deps, { ...facts, inventory }) };
}

it('tries 300 ports, 200 in parallel, and counts the reachable ones', async () => {
  const { tiers, most, check } = scene(1_000, 300);
  expect(await check()).toMatchObject({ asked: 300, opened: 300, reached: 299, refused: false });
  expect([tiers, most.seen]).toEqual([[300], 200]);
});

it('tries fewer ports if the agent accepts no more, and at most half of a range', async () => {
  const older = scene(1_000, 32);
  expect(await older.check()).toMatchObject({ opened: 10, reached: 9 });
  expect(older.tiers).toEqual([300, 50, 10]);
  const small = scene(60, 300);
  await small.check();
  const tiny = scene(4, 300);
  await tiny.check();
  expect([small.tiers, tiny.tiers]).toEqual([[30], [4]]);
});

it('distinguishes a refusal, closed ports and an agent that does not answer', async () => {
  const busy = await scene(100, new ApiError('conflict', 'Another check')).check();
  expect(busy).toEqual({
    asked: 0,
    opened: 0,
    reached: 0,
    problem: 'Another check',
    refused: true,
    others: null,
    repeated: false,
  });
  expect(await scene(0, 300).check()).toMatchObject({ opened: 0, refused: false });
  for (const error of [
    new ApiError('upstream_unavailable', 'gone'),
    new ApiError('not_found', 'no such route'),
  ]) {
    await expect(scene(100, error).check()).rejects.toBe(error);
  }
});
