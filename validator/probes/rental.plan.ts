/** Plans a hidden rental like an ordinary one: a pure function of a secret source, the recorded use and the market. */
import { derivedRandom, type Random } from '#shared/runtime/random.ts';
import { drawn, drawnMs, type OrdinaryUse, oneOf } from './ordinary-use.ts';
import type { ProbeAccount, ProbeAccounts } from './probe-accounts.ts';
import type { FreeNode, Template } from './renter-client.ts';

export type KeyPlan = { type: 'ed25519' | 'rsa' | 'ecdsa'; bits: number; comment: string };

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
  /** Locale of the SSH client; null for none. */
  locale: string | null;
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

/** Hours of the price that a spending limit must cover, so that it does not end the rental early. */
const SPEND_HOURS = 2;

export function planRental(random: Random, use: OrdinaryUse, choice: Choice): RentalPlan {
  const fitting = use.requests.filter((request) => fits(request, choice));
  const least = { count: 1, template: 0, gpu_count: choice.minGpus };
  const { count, template, ...body } = drawn(random, fitting.length > 0 ? fitting : [least]);
  const { templateIds } = choice;
  const { type, bits, comment } = drawn(random, use.keys);
  const course = drawn(random, use.courses);
  return {
    body: {
      pod_name: podName(random, use),
      template_id: templateIds[template] ?? templateIds[0],
      ...body,
    },
    key: { type, bits, comment: filled(random, comment, use) },
    pollMs: course.poll_ms,
    loginAfterMs: course.login_after_ms,
    locale: course.locale,
    betweenMs: drawnMs(random, use.between_measurements_ms),
    lingerMs: drawnMs(random, use.linger_ms),
  };
}

const podName = (random: Random, { pod_names: names }: OrdinaryUse): string =>
  names[random.int(names.length)] ?? '';

type Request = OrdinaryUse['requests'][number];

/** A request without a number of GPUs takes the whole node, which may be rented in part. */
function fits(
  { gpu_count: gpus, max_spend_usd: spend }: Request,
  { allGpus, freeGpus, minGpus, pricePerGpu }: Choice,
): boolean {
  const isFree = gpus === undefined ? freeGpus === allGpus : gpus >= minGpus && gpus <= freeGpus;
  return isFree && (spend === undefined || spend >= SPEND_HOURS * pricePerGpu * freeGpus);
}

const HEX = '0123456789abcdef';
const CAPITALS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const HEX_CHARS = 12;
const ID_CHARS = 7;
const BYTE = 256;

/** Fills the parts of a comment that differ from owner to owner, or from computer to computer. */
function filled(random: Random, comment: string, { users }: OrdinaryUse): string {
  const user = users[random.int(users.length)] ?? '';
  const capital = `${user.slice(0, 1).toUpperCase()}${user.slice(1)}`;
  const chars = (count: number, from: string) =>
    Array.from({ length: count }, () => from[random.int(from.length)]).join('');
  return comment
    .replace('{user}', user)
    .replace('{User}', capital)
    .replace('{hex}', () => chars(HEX_CHARS, HEX))
    .replace('{id}', () => chars(ID_CHARS, CAPITALS))
    .replaceAll('{byte}', () => String(random.int(BYTE)));
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
  const ms = plan.loginAfterMs + plan.betweenMs + plan.lingerMs;
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
