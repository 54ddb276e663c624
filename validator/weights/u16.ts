/** Converts exact shares to 16-bit weights: largest remainder, ties by public key, a floor of 1. Pure. */
import { type Hotkey, publicKeyOf } from '#shared/signing/hotkey.ts';

export const MAX_WEIGHT = 65_535;
const MAX = BigInt(MAX_WEIGHT);

/** `part` is the numerator over the common denominator. */
export type Share = { hotkey: Hotkey; part: bigint };

export type Conversion = {
  denominator: bigint;
  mode: 'sum65535' | 'max65535';
  /** Returns true if a hotkey gets at least 1. */
  needsFloor(share: Share): boolean;
};

/**
 * Returns a weight per hotkey. The sum of the weights, or the largest of them, is 65,535. At least one share must be
 * positive.
 */
export function toU16(shares: readonly Share[], conversion: Conversion): Map<Hotkey, number> {
  const ordered = inOrderOfKeys(shares);
  const weights =
    conversion.mode === 'sum65535'
      ? largestRemainder(ordered, conversion.denominator)
      : scaledToLargest(ordered);
  const isSum = conversion.mode === 'sum65535';
  for (const share of ordered) {
    if ((weights.get(share.hotkey) ?? 0) > 0 || !conversion.needsFloor(share)) continue;
    if (isSum && !takeOneFromLargest(ordered, weights)) break;
    weights.set(share.hotkey, 1);
  }
  return weights;
}

function largestRemainder(ordered: readonly Share[], denominator: bigint): Map<Hotkey, number> {
  const quotas = ordered.map(({ hotkey, part }) => ({
    hotkey,
    whole: Number((part * MAX) / denominator),
    rest: (part * MAX) % denominator,
  }));
  const left = MAX_WEIGHT - quotas.reduce((sum, { whole }) => sum + whole, 0);
  // The sort is stable: equal remainders keep the order of the public keys.
  const raised = new Set(
    quotas
      .toSorted((a, b) => (a.rest === b.rest ? 0 : a.rest > b.rest ? -1 : 1))
      .slice(0, left)
      .map(({ hotkey }) => hotkey),
  );
  return new Map(
    quotas.map(({ hotkey, whole }) => [hotkey, raised.has(hotkey) ? whole + 1 : whole]),
  );
}

function scaledToLargest(ordered: readonly Share[]): Map<Hotkey, number> {
  const largest = ordered.reduce((most, { part }) => (part > most ? part : most), 1n);
  return new Map(ordered.map(({ hotkey, part }) => [hotkey, Number((part * MAX) / largest)]));
}

/** Takes 1 from the largest weight, the first if several are equal. Returns false if no weight exceeds 1. */
function takeOneFromLargest(ordered: readonly Share[], weights: Map<Hotkey, number>): boolean {
  let richest: Hotkey | null = null;
  let most = 1;
  for (const { hotkey } of ordered) {
    const weight = weights.get(hotkey) ?? 0;
    if (weight > most) [richest, most] = [hotkey, weight];
  }
  if (richest === null) return false;
  weights.set(richest, most - 1);
  return true;
}

/** Decodes each address only once, because decoding dominates the cost. */
function inOrderOfKeys(shares: readonly Share[]): Share[] {
  return shares
    .map((share) => ({ share, key: publicKeyOf(share.hotkey) ?? new Uint8Array(0) }))
    .sort((a, b) => Buffer.compare(a.key, b.key))
    .map(({ share }) => share);
}
