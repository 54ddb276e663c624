import { expect, it } from 'vitest';
import { createUpdatingHost, INTERVAL_MS, Killed } from '../../test/fakes/agents/updating-host.ts';
import { digestOf, NOW_MS, signedDigest } from '../../test/fixtures/update-manifest.ts';
import { backOffMs } from './update.state.ts';

type Host = ReturnType<typeof createUpdatingHost>;

/** Runs agent and switcher until the update is committed or rolled back. Restarts each after a kill. */
async function carryOn({ boot, switchOver, host }: Host): Promise<void> {
  for (const run of [() => boot().runOnce(), switchOver, () => boot().runOnce()]) {
    await run().catch(async (error: unknown) => {
      if (!(error instanceof Killed)) throw error;
      host.killAt = null;
      await run();
    });
  }
}

it('moves a new version through every state and commits it', async () => {
  const scene = createUpdatingHost();
  const agent = scene.boot();
  await agent.runOnce();
  expect([scene.store.get().state, scene.host.switchers, scene.host.did]).toEqual([
    'SWITCHING',
    1,
    ['fetch bb'],
  ]);
  await scene.switchOver();
  expect(scene.boot().status()).toMatchObject({ state: 'COMMITTED', sequence: 7, reason: null });
  const after = scene.boot();
  await after.runOnce();
  expect(after.status()).toMatchObject({ update_pending: false, current_digest: digestOf('b') });
});

/** Returns a kill before and one after each write of the row. */
const kills = (writes: number) =>
  Array.from({ length: 2 * writes }, (_, at) => ({ write: 1 + (at >> 1), isBefore: at % 2 === 0 }));

it.each(kills(7))(
  'commits the update after a kill at write $write of the row, before the write: $isBefore',
  async (killAt) => {
    const scene = createUpdatingHost();
    scene.host.killAt = killAt;
    await carryOn(scene);
    expect([scene.host.runs, scene.store.get().state]).toEqual([digestOf('b'), 'COMMITTED']);
    expect(scene.host.killAt).toBeNull();
  },
);

it.each(kills(8))(
  'rolls back after a kill at write $write of the row, before the write: $isBefore',
  async (killAt) => {
    const scene = createUpdatingHost();
    Object.assign(scene.host, { killAt, isSound: false });
    await carryOn(scene);
    expect([scene.host.runs, scene.host.killAt]).toEqual([digestOf('a'), null]);
    expect(scene.store.get()).toMatchObject({
      state: 'ROLLED_BACK',
      reason: 'NEW_VERSION_ENDED',
      message: 'its last line',
      attempts: 1,
      denied_until_ms: expect.any(Number),
    });
  },
);

it.each([
  ['is never ready', { isReady: false }, 'NEW_VERSION_NOT_READY'],
  ['ends', { isSound: false }, 'NEW_VERSION_ENDED'],
  ['loses a pod', { lost: ['pod'] }, 'PODS_LOST'],
  ['is refused', { refusal: 'not signed' }, 'NEW_VERSION_REFUSED'],
])(
  'rolls back a version that %s, and retries it after an hour, then two',
  async (_, fault, reason) => {
    const scene = createUpdatingHost();
    Object.assign(scene.host, fault);
    for (const [attempts, hours] of [
      [1, 1],
      [2, 2],
    ] as const) {
      await scene.boot().runOnce();
      await scene.switchOver();
      expect(scene.store.get()).toMatchObject({ state: 'ROLLED_BACK', reason, attempts });
      scene.host.answer = signedDigest({ expiresAt: NOW_MS + 6e8 });
      await scene.clock.advance(hours * 3_600_000 - 60_000);
      await scene.boot().runOnce();
      expect(scene.store.get().state).toBe('ROLLED_BACK');
      await scene.clock.advance(INTERVAL_MS * 2);
    }
    expect(backOffMs(20)).toBe(24 * 3_600_000);
  },
);

it.each([
  [
    'the provider has paused updates',
    { maintenance: 'moving racks' },
    'VERIFIED',
    'MAINTENANCE_HOLD',
    0,
  ],
  ['a backup runs', { busy: 'a backup runs' }, 'VERIFIED', 'BUSY', 0],
  ['the disk is full', { hasSpace: false }, 'PREFLIGHT', 'NO_SPACE', 60_000],
  [
    'GPUs do not reach containers',
    { probe: { reason: 'NVIDIA_RUNTIME_MISMATCH', message: '' } },
    'PREFLIGHT',
    'NVIDIA_RUNTIME_MISMATCH',
    60_000,
  ],
])('waits while %s, reports it, and continues', async (_, change, state, reason, againMs) => {
  const scene = createUpdatingHost();
  const agent = scene.boot();
  Object.assign(scene.host, change);
  await agent.runOnce();
  expect(agent.status()).toMatchObject({ state, reason, update_pending: true });
  Object.assign(scene.host, { maintenance: null, busy: null, hasSpace: true, probe: null });
  await scene.clock.advance(againMs);
  await agent.runOnce();
  expect(agent.status()).toMatchObject({ state: 'SWITCHING', reason: null });
});

it.each([
  [
    'a bad signature',
    { ...signedDigest(), manifest: signedDigest({ notes: 'x' }).manifest },
    'SIGNATURE_BAD',
  ],
  ['another image', signedDigest({ image: 'evil.example/agent' }), 'IMAGE_OTHER'],
  ['an expired manifest', signedDigest({ expiresAt: NOW_MS - 1 }), 'EXPIRED'],
])('does not update for %s, and reports the reason', async (_, answer, reason) => {
  const scene = createUpdatingHost();
  scene.host.answer = answer;
  const agent = scene.boot();
  await agent.runOnce();
  expect(agent.status()).toMatchObject({ state: 'IDLE', reason, sequence: 0 });
  expect([scene.host.runs, scene.host.staged, scene.host.did]).toEqual([digestOf('a'), null, []]);
});

it('retains the accepted sequence when an older manifest is replayed', async () => {
  const scene = createUpdatingHost();
  await carryOn(scene);
  scene.host.answer = signedDigest({ sequence: 6, digest: digestOf('a') });
  await scene.clock.advance(2 * INTERVAL_MS);
  const agent = scene.boot();
  await agent.runOnce();
  expect(agent.status()).toMatchObject({ state: 'COMMITTED', reason: 'SEQUENCE_OLD', sequence: 7 });
});

it('drops an update in progress when the validator rolls the version back', async () => {
  const scene = createUpdatingHost();
  scene.host.maintenance = 'not now';
  const agent = scene.boot();
  await agent.runOnce();
  const rollbackTo = { digest: digestOf('a'), reason: 'broken' };
  scene.host.answer = signedDigest({ sequence: 8, rollbackTo });
  await scene.clock.advance(2 * INTERVAL_MS);
  await agent.runOnce();
  expect(agent.status()).toMatchObject({
    state: 'IDLE',
    sequence: 8,
    target_digest: null,
    update_pending: false,
  });
});

it('continues an update when the same digest comes with another sequence', async () => {
  const scene = createUpdatingHost();
  scene.host.maintenance = 'not now';
  const agent = scene.boot();
  await agent.runOnce();
  scene.host.answer = signedDigest({ sequence: 8, expiresAt: NOW_MS + 6e8 });
  await scene.clock.advance(2 * INTERVAL_MS);
  scene.host.maintenance = null;
  await agent.runOnce();
  expect(agent.status()).toMatchObject({ state: 'SWITCHING', sequence: 8, target_sequence: 7 });
});

it('reports an unsuitable container, and checks again after a minute', async () => {
  const scene = createUpdatingHost();
  scene.host.isForeign = true;
  const agent = scene.boot();
  await agent.runOnce();
  expect(agent.status()).toMatchObject({
    state: 'IDLE',
    reason: 'INSTALLATION_UNSUITABLE',
    message: 'it lacks the label',
  });
  scene.host.isForeign = false;
  await agent.runOnce();
  expect(agent.status().state).toBe('IDLE');
  await scene.clock.advance(60_000);
  await agent.runOnce();
  expect(agent.status()).toMatchObject({ state: 'SWITCHING', reason: null });
});

it('checks for a manifest at once if its clock was set back', async () => {
  const scene = createUpdatingHost();
  scene.store.put({ ...scene.store.get(), next_check_ms: NOW_MS + 6e8 });
  const agent = scene.boot();
  await agent.runOnce();
  expect(agent.status().state).toBe('SWITCHING');
});

it('checks every five minutes plus jitter, even if the marketplace does not respond', async () => {
  const scene = createUpdatingHost();
  scene.host.answer = new Error('away');
  const agent = scene.boot();
  await agent.runOnce();
  const { last_check_ms: lastMs, next_check_ms: nextMs } = agent.status();
  const pauseMs = (nextMs ?? 0) - (lastMs ?? 0);
  expect([pauseMs >= INTERVAL_MS, pauseMs <= 1.1 * INTERVAL_MS]).toEqual([true, true]);
});
