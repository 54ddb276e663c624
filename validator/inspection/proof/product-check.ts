/** Has rows of a product opened that nobody could know of before its commitment, and verifies them. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import { MAX_OPENED_ROWS } from '#shared/api/agent/challenges.ts';
import { roundSeeds } from '#shared/proof-of-work/seed.ts';
import type { Random } from '#shared/runtime/random.ts';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import type { Verifier } from './verifier.ts';
import type { RowFault } from './verify-rows.ts';

/** Half-done work escapes one time in 2^16. */
const ROWS = 16;
/**
 * Rounds before the last of which one row is looked at, chosen by chance: a round that was skipped has none. Each
 * costs as much to verify as the last.
 */
const EARLIER_ROUNDS = 1;

export type ProductCheckDeps = {
  client: Pick<AgentClient, 'openChallenge'>;
  random: Random;
  verifier: Pick<Verifier, 'rows'>;
};

export type CommittedProduct = {
  challengeId: string;
  /** UUID of the card that made it; null for the processor. */
  card: string | null;
  seed: Uint8Array;
  n: number;
  rounds: number;
  /** Hex, as they were committed to. */
  roots: readonly string[];
};

export type ProductCheck = { detail: string | null; openingsHash: string | null };

/** What is wrong with the product, null for nothing, and the hash of what was opened of it. */
export async function checkProduct(
  { client, random, verifier }: ProductCheckDeps,
  { challengeId, card, seed, n, rounds, roots: said }: CommittedProduct,
): Promise<ProductCheck> {
  if (said.length !== rounds) {
    return { detail: 'The product has not the rounds asked for', openingsHash: null };
  }
  const roots = said.map((root) => Buffer.from(root, 'hex'));
  const chosen = chooseRows({ n, rounds }, random);
  const opening = await client.openChallenge(challengeId, {
    card,
    rows: chosen.flatMap(({ round, indices }) => indices.map((index) => ({ round, index }))),
  });
  const openingsHash = sha256Hex(canonicalJson(opening));
  const seeds = roundSeeds(seed, roots);
  for (const { round, indices: asked } of chosen) {
    const [roundSeed, root] = [seeds[round], roots[round]];
    if (roundSeed === undefined || root === undefined) throw new RangeError(`no round ${round}`);
    const opened = opening.rows.filter((row) => row.round === round);
    const fault = await verifier.rows({ committed: { seed: roundSeed, n, root }, asked, opened });
    if (fault !== null) return { detail: `Round ${round}: ${ROW_FAULTS[fault]}`, openingsHash };
  }
  return { detail: null, openingsHash };
}

const ROW_FAULTS: Record<RowFault, string> = {
  malformed: 'the rows opened are not those asked for',
  not_committed: 'a row opened is not the one committed to',
  wrong: 'a row is not that of the product',
};

/** By round, in order: rows of the last, and one of each of some before. */
function chooseRows({ n, rounds }: { n: number; rounds: number }, random: Random) {
  const earlier = distinct(Math.min(EARLIER_ROUNDS, rounds - 1), rounds - 1, random);
  const last = Math.min(ROWS, n, MAX_OPENED_ROWS - earlier.length);
  return [
    ...earlier
      .sort((one, other) => one - other)
      .map((round) => ({ round, indices: distinct(1, n, random) })),
    { round: rounds - 1, indices: distinct(last, n, random) },
  ];
}

function distinct(count: number, below: number, random: Random): number[] {
  const chosen = new Set<number>();
  while (chosen.size < count) chosen.add(random.int(below));
  return [...chosen];
}
