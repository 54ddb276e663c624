/**
 * Computes weights from the formula of validator/weights/README.md, on fractions, without code of the product: the
 * reference with which the weights of random fleets are compared.
 */

type Entry = {
  executor_id: string;
  hotkey: string;
  verdict: string;
  simulated: boolean;
  gpu_model: string;
  gpu_count: number;
  rented: boolean;
  uptime_minutes: number;
  runtime_proven: boolean;
  collateral: boolean;
  failure_ppm: number;
  price_uusd: number | null;
  bandwidth_mbit: number | null;
  paid_fees_uusd?: number | undefined;
  chat_linked?: boolean | undefined;
};

export type Fleet = {
  neurons: readonly { uid: number; hotkey: string }[];
  window?: { length_ms: number } | undefined;
  cycles: readonly { entries: readonly Entry[] }[];
};

export type Rules = {
  burn_hotkey: string | null;
  pools_ppm: { mining: number; idle: number };
  rates_uusd: Readonly<Record<string, number>>;
  max_price_rate_ppm: number;
  uptime: { floor_ppm: number; full_minutes: number };
  runtime_bonus_ppm: number;
  no_collateral_ppm: number;
  linked_chat_bonus_ppm: number;
  rewards: { value_uusd_per_hour: number; fee_return_ppm: number; idle_rate_ppm: number };
  idle_caps: readonly {
    model: string | null;
    min_gpus: number;
    max_gpus: number;
    cap_gpus: number;
  }[];
  window_cycles: number;
  min_bandwidth_mbit: number;
  banned_hotkeys: readonly string[];
  conversion: 'sum65535' | 'max65535';
  live_floor: boolean;
};

/** A fraction; the denominator is positive. */
type Fraction = readonly [bigint, bigint];

const whole = (value: number | bigint): Fraction => [BigInt(value), 1n];
const ppm = (value: number): Fraction => [BigInt(value), 1_000_000n];
const times = (...factors: Fraction[]): Fraction =>
  factors.reduce(([a, b], [c, d]) => [a * c, b * d], whole(1));
const plus = ([a, b]: Fraction, [c, d]: Fraction): Fraction => [a * d + c * b, b * d];
const over = ([a, b]: Fraction, [c, d]: Fraction): Fraction => [a * d, b * c];
const floor = ([a, b]: Fraction): bigint => a / b;
const isLess = ([a, b]: Fraction, [c, d]: Fraction): boolean => a * d < c * b;
const least = (a: Fraction, b: Fraction): Fraction => (isLess(a, b) ? a : b);
const inPpm = (fraction: Fraction): Fraction =>
  over(whole(floor(times(fraction, whole(1_000_000)))), whole(1_000_000));

const HOUR_MS = 3_600_000;
const FULL = 65_535n;

/** Weights by uid, without zeros; null if the recipient of the rest is not registered. */
export function modelWeights(
  fleet: Fleet,
  rules: Rules,
  keyOf: (hotkey: string) => Uint8Array,
): Map<number, number> | null {
  const { neurons } = fleet;
  const rest = neurons.find(({ uid, hotkey }) =>
    rules.burn_hotkey === null ? uid === 0 : hotkey === rules.burn_hotkey,
  );
  if (rest === undefined) return null;
  const registered = new Set(neurons.map(({ hotkey }) => hotkey));
  const earned = executorsOf(fleet, rules).filter(({ hotkey }) => registered.has(hotkey));
  const [fees, idle] = [sum(earned.map((one) => one.fees)), sum(earned.map((one) => one.idle))];
  const pools = poolsOf(fees, idle, fleet.window?.length_ms ?? 0, rules);
  const shares = new Map<string, Fraction>([
    [rest.hotkey, plus(whole(1), times(whole(-1), plus(pools.mining, pools.idle)))],
  ]);
  for (const one of earned) {
    const own = plus(part(pools.mining, one.fees, fees), part(pools.idle, one.idle, idle));
    shares.set(one.hotkey, plus(shares.get(one.hotkey) ?? whole(0), own));
  }
  const last = fleet.cycles.at(-1)?.entries ?? [];
  const live = new Set(last.filter(({ verdict }) => verdict === 'ok').map(({ hotkey }) => hotkey));
  const needsOne = (hotkey: string, share: Fraction) =>
    hotkey !== rest.hotkey && (share[0] > 0n || (rules.live_floor && live.has(hotkey)));
  const ordered = [...shares].sort(([a], [b]) => Buffer.compare(keyOf(a), keyOf(b)));
  const weights = rules.conversion === 'sum65535' ? summing(ordered) : scaled(ordered);
  for (const [hotkey, share] of ordered) {
    if (weights.get(hotkey) !== 0n || !needsOne(hotkey, share)) continue;
    if (rules.conversion === 'sum65535') {
      const most = ordered.reduce((best, [key]) => max(best, weights.get(key) ?? 0n), 0n);
      const richest = ordered.find(([key]) => weights.get(key) === most)?.[0];
      if (richest === undefined || most <= 1n) break;
      weights.set(richest, most - 1n);
    }
    weights.set(hotkey, 1n);
  }
  const posted = neurons.map(
    ({ uid, hotkey }) => [uid, Number(weights.get(hotkey) ?? 0n)] as const,
  );
  return new Map(posted.filter(([, weight]) => weight > 0));
}

const max = (a: bigint, b: bigint) => (a > b ? a : b);
const sum = (values: readonly bigint[]) => values.reduce((total, value) => total + value, 0n);
const part = (pool: Fraction, own: bigint, all: bigint): Fraction =>
  all === 0n ? whole(0) : times(pool, [own, all]);

function poolsOf(fees: bigint, idle: bigint, lengthMs: number, { rewards, pools_ppm }: Rules) {
  const value = whole(rewards.value_uusd_per_hour);
  const perHour =
    lengthMs === 0 ? whole(0) : over(whole(fees), over(whole(lengthMs), whole(HOUR_MS)));
  const mining = inPpm(over(times(perHour, ppm(rewards.fee_return_ppm)), value));
  const waiting = inPpm(over(times(whole(idle), ppm(rewards.idle_rate_ppm)), value));
  return {
    mining: least(mining, ppm(pools_ppm.mining)),
    idle: least(waiting, ppm(pools_ppm.idle)),
  };
}

type Earned = { hotkey: string; fees: bigint; idle: bigint };

function executorsOf({ cycles }: Fleet, rules: Rules): Earned[] {
  const ids = new Set(cycles.flatMap(({ entries }) => entries.map((entry) => entry.executor_id)));
  return [...ids].flatMap((id) => {
    const measured = cycles.flatMap(({ entries }, index) =>
      entries
        .filter((entry) => entry.executor_id === id && entry.verdict !== 'withheld')
        .map((entry) => ({ entry, entries, age: cycles.length - 1 - index })),
    );
    const inWindow = measured.filter(({ age }) => age < rules.window_cycles);
    const last = inWindow.at(-1);
    if (last === undefined) return [];
    const { hotkey } = last.entry;
    if (last.age > 4) return [{ hotkey, fees: 0n, idle: 0n }];
    const waiting = inWindow.map(({ entry, entries }) => idlePoints(entry, entries, rules));
    const idle = last.age === 4 ? waiting.at(-1) : sum(waiting) / BigInt(waiting.length);
    return [{ hotkey, fees: feePoints(inWindow, rules), idle: idle ?? 0n }];
  });
}

/** Each fee counts once: only what exceeds every earlier total. */
function feePoints(measured: readonly { entry: Entry }[], rules: Rules): bigint {
  let known: number | null = null;
  let points = 0n;
  for (const { entry } of measured) {
    if (entry.paid_fees_uusd === undefined) continue;
    const paid = entry.paid_fees_uusd;
    if (known !== null && paid > known) {
      points += floor(times(whole(paid - known), quality(entry, rules)));
    }
    known = known === null ? paid : Math.max(known, paid);
  }
  return points;
}

function idlePoints(entry: Entry, entries: readonly Entry[], rules: Rules): bigint {
  if (entry.rented) return 0n;
  const rate = rules.rates_uusd[entry.gpu_model] ?? 0;
  const unit = whole(entry.gpu_count * rate);
  return floor(times(unit, quality(entry, rules), dilution(entry, entries, rules)));
}

/** Product of all factors except unit and dilution. */
function quality(entry: Entry, rules: Rules): Fraction {
  if (!isEligible(entry, rules)) return whole(0);
  const { floor_ppm: from, full_minutes: full } = rules.uptime;
  const minutes = Math.min(entry.uptime_minutes, full);
  const risen = inPpm([BigInt(minutes), BigInt(full)]);
  const uptime = inPpm(plus(ppm(from), times(ppm(1_000_000 - from), risen)));
  return times(
    uptime,
    ppm(1_000_000 + (entry.runtime_proven ? rules.runtime_bonus_ppm : 0)),
    ppm(entry.collateral ? 1_000_000 : rules.no_collateral_ppm),
    ppm(1_000_000 + (entry.chat_linked === true ? rules.linked_chat_bonus_ppm : 0)),
    ppm(1_000_000 - entry.failure_ppm),
  );
}

function isEligible(entry: Entry, rules: Rules): boolean {
  const rate = rules.rates_uusd[entry.gpu_model] ?? 0;
  const highest = floor(times(whole(rate), ppm(rules.max_price_rate_ppm)));
  const isDear = entry.price_uusd !== null && BigInt(entry.price_uusd) > highest;
  const isSlow = entry.bandwidth_mbit !== null && entry.bandwidth_mbit < rules.min_bandwidth_mbit;
  const isBanned = rules.banned_hotkeys.includes(entry.hotkey);
  const isGood = entry.verdict === 'ok' && !entry.simulated;
  return isGood && rate > 0 && !isDear && !isSlow && !isBanned;
}

function dilution(entry: Entry, entries: readonly Entry[], rules: Rules): Fraction {
  const cap = capOf(entry, rules);
  if (cap === undefined) return whole(1);
  const same = entries.filter(
    (other) =>
      !other.rented &&
      other.verdict !== 'failed' &&
      other.gpu_model === entry.gpu_model &&
      capOf(other, rules) === cap,
  );
  const gpus = same.reduce((count, other) => count + other.gpu_count, 0);
  return gpus <= cap.cap_gpus ? whole(1) : inPpm([BigInt(cap.cap_gpus), BigInt(gpus)]);
}

/** Returns the cap for the model, or else the cap for every model. */
function capOf({ gpu_model, gpu_count }: Entry, { idle_caps }: Rules) {
  const fits = idle_caps.filter((cap) => cap.min_gpus <= gpu_count && gpu_count <= cap.max_gpus);
  return fits.find(({ model }) => model === gpu_model) ?? fits.find(({ model }) => model === null);
}

/** Rounds shares to weights with the sum 65,535: the largest remainders are rounded up. */
function summing(shares: readonly (readonly [string, Fraction])[]): Map<string, bigint> {
  const exact = shares.map(([hotkey, share]) => ({ hotkey, quota: times(share, whole(FULL)) }));
  const weights = new Map(exact.map(({ hotkey, quota }) => [hotkey, floor(quota)]));
  const remainder = (quota: Fraction) => plus(quota, whole(-floor(quota)));
  const byRemainder = exact.toSorted((a, b) => {
    const [left, right] = [remainder(a.quota), remainder(b.quota)];
    return isLess(right, left) ? -1 : isLess(left, right) ? 1 : 0;
  });
  const missing = Number(FULL - sum([...weights.values()]));
  for (const { hotkey } of byRemainder.slice(0, missing)) {
    weights.set(hotkey, (weights.get(hotkey) ?? 0n) + 1n);
  }
  return weights;
}

/** Scales shares to weights of which the largest is 65,535. */
function scaled(shares: readonly (readonly [string, Fraction])[]): Map<string, bigint> {
  const largest = shares.reduce(
    (most, [, share]) => (isLess(most, share) ? share : most),
    whole(0),
  );
  return new Map(
    shares.map(([hotkey, share]) => [hotkey, floor(over(times(share, whole(FULL)), largest))]),
  );
}
