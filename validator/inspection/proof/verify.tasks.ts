/** What a validator computes to verify a proof, as its thread does it. */
import type { OpenedRow } from '#shared/api/agent/challenges.ts';
import { filledBlocks, type Walk, walk } from '#shared/proof-of-work/walk.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { type Committed, faultInRows, type RowFault } from './verify-rows.ts';

export type RowsTask = {
  kind: 'rows';
  committed: Committed;
  asked: readonly number[];
  opened: readonly OpenedRow[];
};
export type WalkTask = { kind: 'walk'; seed: Uint8Array; walk: Walk };
export type VerifyTask = RowsTask | WalkTask;

/** The first fault among rows, or where a walk ends, hex: as the task's kind says. */
export type Verified = { fault: RowFault | null } | { digest: string };

/** Whatever the task asks for. */
export async function verify(task: VerifyTask): Promise<Verified> {
  if (task.kind === 'rows') {
    return { fault: faultInRows(task.committed, task.asked, task.opened, systemRandom) };
  }
  const { seed, walk: asked } = task;
  const digest = await walk(seed, asked, (index) =>
    filledBlocks(seed, asked, { from: index, count: 1 }),
  );
  return { digest: digest.toString('hex') };
}
