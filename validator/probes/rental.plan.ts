/** Plans a hidden rental like an ordinary one: a pure function of a secret source, the recorded use and the market. */
import { derivedRandom, type Random } from '#shared/runtime/random.ts';
import { drawn, drawnMs, type OrdinaryUse, oneOf } from './ordinary-use.ts';
import type { ProbeAccount, ProbeAccounts } from './probe-accounts.ts';
import type { FreeNode, Template } from './renter-client.ts';

export const KEY_TYPES = ['ed25519', 'rsa', 'ecdsa'] as const;
export type KeyPlan = { type: (typeof KEY_TYPES)[number]; bits: number; comment: string };

/** Members of the rent request that are drawn; absent members are not sent. */
export type RentBody = {
  pod_name: string;
  template_id: string;
  gpu_count?: number;
  initial_port_count?: number;
  termination_hours?: number;
  max_spend_usd?: number;
  idle_shutdown_minutes?: number;
  enable_jupyter?: true;
};

export type RentalPlan = {
  body: RentBody;
  key: KeyPlan;
  /** Pause between two reads of the pod while it starts. */
  pollMs: number;
  /** Milliseconds from the start of the pod to the first login, and between the two measurements. */
  loginAfterMs: number;
  betweenMs: number;
  /** Milliseconds from the second measurement to the end. */
  lingerMs: number;
  logReads: 'none' | 'once' | 'follow';
  metricReads: number;
  /** True if the rental ends with its time instead of a request. */
  expires: boolean;
};

/** Offer of the market to the renter. */
export type Choice = {
  templateIds: readonly [string, ...string[]];
  allGpus: number;
  freeGpus: number;
  /** Smallest number of GPUs that a rental may take. */
  minGpus: number;
  /** USD per hour. */
  pricePerGpu: number;
};

const NUMBERS = 100;
const EXPIRING_HOURS = 1;
/** Hours of the price that a spending limit must cover, so that it does not end the rental early. */
const SPEND_HOURS = 2;

export function planRental(
  random: Random,
  use: OrdinaryUse,
  { templateIds, allGpus, freeGpus, minGpus, pricePerGpu }: Choice,
): RentalPlan {
  const number = (weights: Record<string, number>): number | null => {
    const value = drawn(random, weights);
    return value === 'absent' ? null : Number(value);
  };
  const gpus = number(use.gpu_counts);
  const fits = gpus !== null && gpus >= minGpus && gpus <= freeGpus;
  // Without a number the rental would take the whole node, which may be rented in part.
  const gpuCount = fits ? gpus : freeGpus < allGpus ? minGpus : null;
  const spend = number(use.max_spend_usd);
  const coversSpend = spend !== null && spend >= SPEND_HOURS * pricePerGpu * freeGpus;
  const hours = number(use.termination_hours);
  const ports = number(use.port_counts);
  const idle = number(use.idle_minutes);
  const wantsNotebook = drawn(random, use.notebook) === 'true';
  const end = drawn(random, use.ends);
  return {
    body: {
      pod_name: podName(random, use),
      template_id: templateOf(random, use, templateIds),
      ...(gpuCount === null ? {} : { gpu_count: gpuCount }),
      ...(ports === null ? {} : { initial_port_count: ports }),
      ...(hours === null ? {} : { termination_hours: hours }),
      ...(coversSpend ? { max_spend_usd: spend } : {}),
      ...(idle === null ? {} : { idle_shutdown_minutes: idle }),
      ...(wantsNotebook ? { enable_jupyter: true as const } : {}),
    },
    key: keyPlan(random, use),
    pollMs: drawnMs(random, use.poll_ms),
    loginAfterMs: drawnMs(random, use.login_after_ms),
    betweenMs: drawnMs(random, use.between_measurements_ms),
    lingerMs: drawnMs(random, use.linger_ms),
    logReads: drawn(random, use.log_reads) as RentalPlan['logReads'],
    metricReads: Number(drawn(random, use.metric_reads)),
    expires: hours === EXPIRING_HOURS && end === 'expiry',
  };
}

function podName(random: Random, { pod_names: { words, forms } }: OrdinaryUse): string {
  return drawn(random, forms)
    .replaceAll('{word}', () => drawn(random, words))
    .replace('{number}', () => String(random.int(NUMBERS)));
}

function templateOf(random: Random, use: OrdinaryUse, ids: Choice['templateIds']): string {
  const ranks = use.templates_by_rank;
  const weights = ids.map((id, rank) => [id, ranks[rank] ?? ranks.at(-1) ?? 1] as const);
  return drawn(random, Object.fromEntries(weights));
}

function keyPlan(random: Random, { ssh_keys: keys }: OrdinaryUse): KeyPlan {
  const name = drawn(random, keys.types);
  const type = KEY_TYPES.find((each) => each === name) ?? 'ed25519';
  const comment = drawn(random, keys.comments)
    .replace('{user}', () => drawn(random, keys.users))
    .replace('{host}', () => drawn(random, keys.hosts))
    .replace('{number}', () => String(random.int(NUMBERS)));
  return { type, bits: Number(drawn(random, keys.rsa_bits)), comment };
}

/** A rental with everything that depends on the secret. */
export type DrawnRental = {
  account: ProbeAccount;
  plan: RentalPlan;
  /** Startup commands of the template. */
  startupCommands: string;
  /** Source of the measurements. */
  measurements: Random;
  /** Highest cost in micro-dollars. */
  costUusd: number;
};

/**
 * Draws a rental of a free node. Null if the market has no template: those of other accounts may have no shell, or use
 * the cards.
 */
export function drawRental(
  { secret, accounts }: ProbeAccounts,
  {
    id,
    node,
    templates,
    use,
  }: { id: string; node: FreeNode; templates: readonly Template[]; use: OrdinaryUse },
): DrawnRental | null {
  const source = derivedRandom(secret, `rental ${id}`);
  const official = templates.filter(({ user_id: owner }) => owner === null);
  const [first, ...others] = official;
  if (first === undefined) return null;
  const account = oneOf(source, accounts);
  const plan = planRental(source, use, {
    templateIds: [first.id, ...others.map((template) => template.id)],
    allGpus: node.gpu_count,
    freeGpus: node.available_gpu_count,
    minGpus: node.min_gpu_count_for_rental ?? node.gpu_count,
    pricePerGpu: node.price_per_gpu,
  });
  const template = official.find((each) => each.id === plan.body.template_id);
  return {
    account,
    plan,
    startupCommands: template?.startup_commands ?? '',
    measurements: derivedRandom(secret, `measurements ${id}`),
    costUusd: costOf(plan, node),
  };
}

const HOUR_MS = 3_600_000;
const UUSD = 1_000_000;
/** Longest time that start and measurements take beyond the planned pauses. */
const START_AND_MEASURE_MS = 900_000;

/** The central API charges by the second. */
function costOf(plan: RentalPlan, node: FreeNode): number {
  const gpus = plan.body.gpu_count ?? node.gpu_count;
  const pausesMs = plan.loginAfterMs + plan.betweenMs + plan.lingerMs;
  const ms = plan.expires ? HOUR_MS : pausesMs;
  return Math.ceil((node.price_per_gpu * gpus * UUSD * (ms + START_AND_MEASURE_MS)) / HOUR_MS);
}

const DAY_MS = 86_400_000;
/** Part of each interval in which its rental begins; the rest is for the rental itself. */
const BEGIN_SHARE = 0.8;

/**
 * Returns when the rental of the present interval is due, and when the interval began. Each node has its own phase, so
 * that rentals of different nodes are not related.
 */
export function dueIn(
  sourceFor: (label: string) => Random,
  { executorId, perDay, nowMs }: { executorId: string; perDay: number; nowMs: number },
): { sinceMs: number; dueMs: number } {
  const lengthMs = Math.floor(DAY_MS / perDay);
  const phaseMs = sourceFor(`phase ${executorId}`).int(lengthMs);
  const interval = Math.floor((nowMs - phaseMs) / lengthMs);
  const sinceMs = interval * lengthMs + phaseMs;
  const offsetMs = sourceFor(`due ${executorId} ${interval}`).int(
    Math.floor(lengthMs * BEGIN_SHARE),
  );
  return { sinceMs, dueMs: sinceMs + offsetMs };
}
