import { expect, it } from 'vitest';
import { NO_PROGRESS, type PullProgress } from '#shared/api/agent/images.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createPodPulls } from './pod-pulls.ts';

const LAYER = { id: 'a', state: 'done' as const, bytes_extracted: 0 };

/** Returns the progress of two layers, the second of which may have been present before. */
function progress(done: number, layersDone: number, second = 100): PullProgress {
  const sizes = [100, second];
  return {
    ...NO_PROGRESS,
    layers_done: layersDone,
    layers_total: 2,
    bytes_done: done,
    bytes_total: 100 + second,
    layers: sizes.map((bytes_total) => ({ ...LAYER, bytes_done: 0, bytes_total })),
  };
}

function setUp() {
  const clock = createManualClock();
  const state = { live: ['one', 'two'] };
  return { clock, state, pulls: createPodPulls({ clock, livePods: () => state.live }) };
}

it('reports bytes and duration of a pull without its time in the queue', async () => {
  const { clock, pulls } = setUp();
  pulls.note('one', NO_PROGRESS);
  await clock.advance(60_000);
  pulls.note('one', progress(0, 0));
  await clock.advance(3_000);
  pulls.note('one', progress(200, 2));
  expect(pulls.presentOf('one')).toMatchObject({ bytes_done: 200 });
  await clock.advance(1_000);
  pulls.note('one', null);
  expect([pulls.presentOf('one'), pulls.lastOf('one')]).toEqual([
    null,
    {
      finished_ms: clock.now(),
      took_ms: 4_000,
      bytes: 200,
      image_bytes: 200,
      is_whole: true,
    },
  ]);
});

it('counts only bytes received for this pod, and marks partly present images', async () => {
  const { clock, pulls } = setUp();
  pulls.note('one', progress(60, 0, 0));
  await clock.advance(1_000);
  pulls.note('one', progress(100, 2, 0));
  pulls.note('one', null);
  expect(pulls.lastOf('one')).toMatchObject({ bytes: 40, took_ms: 1_000, is_whole: false });
});

it('reports nothing for an aborted pull, and drops removed pods', () => {
  const { pulls, state } = setUp();
  pulls.note('one', progress(0, 0));
  pulls.note('one', null);
  pulls.note('two', NO_PROGRESS);
  pulls.note('two', null);
  expect([pulls.lastOf('one'), pulls.lastOf('two')]).toEqual([null, null]);
  for (const id of ['one', 'two']) {
    pulls.note(id, progress(0, 0));
    pulls.note(id, progress(200, 2));
    if (id === 'two') state.live = ['two'];
    pulls.note(id, null);
  }
  expect(pulls.lastOf('one')).toBeNull();
  expect(pulls.lastOf('two')).not.toBeNull();
});
