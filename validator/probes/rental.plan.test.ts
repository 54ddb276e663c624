import { expect, it } from 'vitest';
import { derivedRandom } from '#shared/runtime/random.ts';
import { drawnMs, ORDINARY_USE } from './ordinary-use.ts';
import { dueIn, planRental } from './rental.plan.ts';

const SECRET = 'a secret of at least thirty-two characters';
const PLANS = 2_000;
const CHOICE = {
  templateIds: ['one', 'two', 'three'] as const,
  allGpus: 8,
  freeGpus: 8,
  minGpus: 1,
  pricePerGpu: 0.5,
};
const plans = Array.from({ length: PLANS }, (_, at) =>
  planRental(derivedRandom(SECRET, `rental ${at}`), ORDINARY_USE, {
    ...CHOICE,
    templateIds: [...CHOICE.templateIds] as [string, ...string[]],
  }),
);
const sharesOf = (values: readonly string[]) => {
  const counts = Map.groupBy(values, (value) => value);
  return new Map([...counts].map(([value, all]) => [value, all.length / values.length]));
};
const totalOf = (cases: readonly { count: number }[]) =>
  cases.reduce((sum, { count }) => sum + count, 0);
/** Probabilities of the values that `pick` finds in the cases. */
const sharesIn = <T extends { count: number }>(cases: readonly T[], pick: (each: T) => unknown) => {
  const groups = Map.groupBy(cases, (each) => String(pick(each)));
  const total = totalOf(cases);
  return new Map([...groups].map(([value, group]) => [value, totalOf(group) / total]));
};

/** Largest difference between a frequency in so many draws and its probability, with a certainty of 99.99 %. */
const MARGIN = 0.045;
const { requests, keys, courses } = ORDINARY_USE;

it.each<[string, unknown[], Map<string, number>]>([
  ['GPUs', plans.map(({ body }) => body.gpu_count), sharesIn(requests, (each) => each.gpu_count)],
  [
    'ports',
    plans.map(({ body }) => body.initial_port_count),
    sharesIn(requests, (each) => each.initial_port_count),
  ],
  [
    'notebooks',
    plans.map(({ body }) => body.enable_jupyter),
    sharesIn(requests, (each) => each.enable_jupyter),
  ],
  ['key types', plans.map(({ key }) => key.type), sharesIn(keys, ({ type }) => type)],
  ['locales', plans.map(({ locale }) => locale), sharesIn(courses, ({ locale }) => locale)],
  [
    'logins',
    plans.map((plan) => plan.loginAfterMs),
    sharesIn(courses, (each) => each.login_after_ms),
  ],
])('draws %s as often as ordinary rentals have them', (_, values, probabilities) => {
  const shares = sharesOf(values.map(String));
  for (const [value, share] of probabilities) {
    expect(Math.abs((shares.get(value) ?? 0) - share)).toBeLessThan(MARGIN);
  }
});

it('has no constant member: names, keys and waits differ from plan to plan', () => {
  const most = (values: readonly unknown[]) => Math.max(...sharesOf(values.map(String)).values());
  expect(most(plans.map((plan) => plan.body.pod_name))).toBeLessThan(0.9);
  expect(most(plans.map(({ key }) => key.comment))).toBeLessThan(0.2);
  expect(plans.filter(({ key }) => /[{}]/.test(key.comment))).toEqual([]);
  expect(most(plans.map((plan) => plan.loginAfterMs))).toBeLessThan(0.2);
  for (const wait of ['betweenMs', 'lingerMs'] as const) {
    expect(most(plans.map((plan) => plan[wait]))).toBeLessThan(0.05);
  }
});

it('repeats a plan for the same secret only', () => {
  const draw = (secret: string) =>
    planRental(derivedRandom(secret, 'rental 0'), ORDINARY_USE, {
      ...CHOICE,
      templateIds: ['one'],
    });
  expect(draw(SECRET)).toEqual(draw(SECRET));
  expect(draw(SECRET)).not.toEqual(draw(`${SECRET} other`));
});

it('never rents fewer or more GPUs than the node offers, and waits minutes between the measurements', () => {
  const choice = {
    templateIds: ['one'] as [string],
    allGpus: 4,
    freeGpus: 4,
    minGpus: 4,
    pricePerGpu: 0.5,
  };
  const drawn = Array.from({ length: PLANS }, (_, at) =>
    planRental(derivedRandom(SECRET, `${at}`), ORDINARY_USE, choice),
  );
  expect(new Set(drawn.map(({ body: { gpu_count } }) => gpu_count ?? 4))).toEqual(new Set([4]));
  expect(Math.min(...drawn.map(({ betweenMs }) => betweenMs))).toBeGreaterThanOrEqual(240_000);
});

it('is due once in each interval, at another time of it for each node', () => {
  const sourceFor = (label: string) => derivedRandom(SECRET, label);
  const nowMs = 1_800_000_000_000;
  const due = (executorId: string, at: number) =>
    dueIn(sourceFor, { executorId, perDay: 2, nowMs: at });
  const { sinceMs, dueMs } = due('a', nowMs);
  expect(sinceMs).toBeLessThanOrEqual(nowMs);
  expect(dueMs - sinceMs).toBeLessThan(12 * 3_600_000);
  expect(due('a', sinceMs + 12 * 3_600_000 - 1)).toEqual({ sinceMs, dueMs });
  expect(due('a', sinceMs + 12 * 3_600_000).sinceMs).toBe(sinceMs + 12 * 3_600_000);
  expect(due('b', nowMs).dueMs - due('b', nowMs).sinceMs).not.toBe(dueMs - sinceMs);
});

it('draws waits within their span, short ones more often', () => {
  const waits = Array.from({ length: PLANS }, (_, at) =>
    drawnMs(derivedRandom(SECRET, `${at}`), [10, 10_000]),
  );
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(10);
  expect(Math.max(...waits)).toBeLessThanOrEqual(10_000);
  expect(waits.filter((ms) => ms < 1_000).length).toBeGreaterThan(PLANS / 2);
});
