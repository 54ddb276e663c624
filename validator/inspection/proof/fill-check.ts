/** Reads a filled device back: a walk that is timed, then random blocks and steps of the walk that are verified. */
import { type FilledDevice, type FillRequest, toLayout } from '#shared/api/agent/challenges.ts';
import { blocksOf } from '#shared/proof-of-work/fill.ts';
import { type ChallengeDeps, distinct, msWithoutRoundTrip } from './challenge.ts';
import type { FillFault } from './verify-fill.ts';
import { leavesFor } from './verify-fill.ts';

/** Verified blocks: a prover that has not computed a tenth of the blocks stays undetected once in 850 proofs. */
const BLOCKS = 64;
/** Verified steps of the walk: a prover that invents half of the steps stays undetected once in 2^32. */
const STEPS = 32;
const NONCE_BYTES = 32;

/** Fill of a device, number of steps of its walk, and the time in which the walk must be answered. */
export type FillSize = FillRequest & {
  steps: number;
  /** Milliseconds without the network round trip: shorter than computing the blocks that the walk reads. */
  readMs: number;
};

export type CommittedDevice = {
  challengeId: string;
  device: FilledDevice;
  seed: Uint8Array;
  size: FillSize;
  /** Root that the prover has committed to, hex. */
  root: string;
  /** Network round trip. */
  roundTripMs: number;
};

/** Fault of a fill; null if it is correct. */
export type FillCheck = { reason: 'POW_MISMATCH' | 'POW_TIMEOUT'; detail: string } | null;

const FAULTS: Record<FillFault, string> = {
  malformed: 'the opened blocks are not the requested blocks',
  not_committed: 'an opened block does not match the commitment',
  wrong_block: 'a block is not computed from the blocks before it',
  wrong_step: 'a read has a wrong result',
};

export async function checkFill(
  { client, clock, random, verifier }: ChallengeDeps,
  { challengeId, device, seed, size, root, roundTripMs }: CommittedDevice,
): Promise<FillCheck> {
  const { steps, readMs } = size;
  const committed = { seed, layout: toLayout(size), root: Buffer.from(root, 'hex') };
  const nonce = random.bytes(NONCE_BYTES);
  const read = async (walk: { nonce: string; steps: number } | null, leaves: readonly number[]) => {
    const fill = { device, walk, leaves: [...leaves] };
    const opening = await client.openChallenge(challengeId, { card: null, rows: [], fill });
    return opening.fill ?? { states: [], leaves: [] };
  };

  const beganMs = clock.monotonicMs();
  const { states } = await read({ nonce: Buffer.from(nonce).toString('hex'), steps }, []);
  const ms = msWithoutRoundTrip(clock.monotonicMs() - beganMs, roundTripMs);
  if (states.length !== steps) return mismatch(device, 'the walk has another length');
  const walked = { nonce, states: states.map((state) => Buffer.from(state, 'hex')) };
  const blocks = blocksOf(committed.layout);
  const chosen = {
    blocks: distinct(Math.min(BLOCKS, blocks), blocks, random),
    steps: distinct(Math.min(STEPS, steps), steps, random),
  };
  const { leaves: opened } = await read(null, leavesFor(committed, walked, chosen));
  const fault = await verifier.fill({ committed, walked, chosen, opened });
  if (fault !== null) return mismatch(device, FAULTS[fault]);
  if (ms <= readMs) return null;
  const detail = `Reading back ${device}: ${Math.round(ms)} ms, at most ${readMs} ms`;
  return { reason: 'POW_TIMEOUT', detail };
}

const mismatch = (device: FilledDevice, fault: string): FillCheck => ({
  reason: 'POW_MISMATCH',
  detail: `Fill of ${device}: ${fault}`,
});

/** Parameters of a fill as they are sent. */
export const toRequest = ({ kind, lanes, lane_blocks }: FillSize): FillRequest => ({
  kind,
  lanes,
  lane_blocks,
});
