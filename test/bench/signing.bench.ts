/** Longest time for which ten thousand signatures of a validator block the event loop. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { keyringSigner } from '../../validator/keys/key-file.ts';
import { createKeyThread } from '../../validator/keys/key-thread.ts';
import { type Row, ratioAtMost } from '../measure/row.ts';

const SIGNATURES = 10_000;
const NANOSECONDS_PER_MS = 1e6;
const SAMPLE_MS = 1;
const MAX_SHARE = 0.05;
/** Time before the monitor's first sample and after its last. */
const SETTLE_MS = 50;

export async function signing(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-bench-'));
  const keys = createKeyThread();
  try {
    const signer = await keys.open({ kind: 'seed', path: join(folder, 'seed') });
    const ours = await longestDelay(async (message) => signer.sign(message));
    const here = await keyringSigner(systemRandom.bytes(32));
    const reference = await longestDelay(async (message) => here.sign(message));
    const name = `longest block of the event loop during ${SIGNATURES} signatures`;
    return [ratioAtMost(name, 'ms', 'signing in the same thread', { ours, reference }, MAX_SHARE)];
  } finally {
    await keys.close();
    rmSync(folder, { recursive: true });
  }
}

/** Longest event-loop delay in milliseconds. */
async function longestDelay(sign: (message: Uint8Array) => Promise<Uint8Array>): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: SAMPLE_MS });
  delay.enable();
  await systemClock.sleep(SETTLE_MS);
  const messages = Array.from({ length: SIGNATURES }, (_, index) =>
    Buffer.from(`message ${index}`),
  );
  await Promise.all(messages.map(sign));
  await systemClock.sleep(SETTLE_MS);
  delay.disable();
  return delay.max / NANOSECONDS_PER_MS;
}
