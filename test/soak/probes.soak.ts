/**
 * Hidden rentals among ordinary ones: hosts record everything that they see until the first command of each rental, and two
 * classifiers try to find the hidden ones. Ordinary rentals replay the half of the recorded use that hidden rentals do not
 * copy.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { readCheckPolicy } from '../../validator/checks/check-policy.ts';
import { createHiddenRentals } from '../../validator/probes/hidden-rentals.service.ts';
import { createOpensshLogin } from '../../validator/probes/openssh-login.ts';
import { ORDINARY_USE, type OrdinaryUse } from '../../validator/probes/ordinary-use.ts';
import { createRenterClient } from '../../validator/probes/renter-client.ts';
import { openEvidenceStore } from '../../validator/store/evidence-store.ts';
import {
  createObservedMarket,
  type ObservedMarket,
  type ObservedRental,
} from '../fakes/scenes/observed-market.ts';
import { createSeededRandom } from '../fakes/seeded-random.ts';
import {
  halfOf,
  isCopied,
  ORDINARY_RENTALS,
  type OrdinaryRentals,
} from '../fixtures/ordinary-rentals.ts';
import { aucOf } from '../measure/auc.ts';
import { crossValidate, type Train, trainLogistic, trainTrees } from '../measure/classifier.ts';
import { figureAtMost, finding, type Row } from '../measure/row.ts';
import { learnEncoding } from './rental-features.ts';

type Print = (line: string) => void;

/** Rentals of each kind. */
const RENTALS = 400;
/** Rentals of the positive control, with one planted sign. */
const CONTROLS = 60;
/** Nodes, on each of which one rental runs at a time. */
const NODES = 8;
const FOLDS = 10;
const MAX_AREA = 0.6;
const MIN_CONTROL = 0.9;
const SHOWN = 6;
const CONSTANT_COMMENT = 'renter@host';

type Case = { value: ObservedRental; label: 0 | 1 };

export async function hiddenAmongOrdinary(options: {
  seed: number;
  print: Print;
  rentals?: number;
}): Promise<Row[]> {
  const { seed, print, rentals = RENTALS } = options;
  return compare(await observeAll({ rentals, seed, print }), { seed, print });
}

/** Trains both classifiers, with the hidden rentals and with the control. */
export function compare(
  { ordinary, hidden, marked }: Observed,
  { seed, print }: { seed: number; print: Print },
): Row[] {
  const rows: Row[] = [];
  const against = (positives: readonly ObservedRental[]): Case[] => [
    ...ordinary.map((value): Case => ({ value, label: 0 })),
    ...positives.map((value): Case => ({ value, label: 1 })),
  ];
  for (const [name, train] of TRAINERS) {
    const { area, low, high } = areaFor(train, against(hidden), seed);
    const interval = `${low.toFixed(3)} to ${high.toFixed(3)}`;
    print(`${name}: area ${area.toFixed(3)}, 95 % interval ${interval}`);
    rows.push(figureAtMost(`${name}: upper limit of the area`, high, 'area', MAX_AREA));
    const control = areaFor(train, against(marked), seed).area;
    const bar = `above ${MIN_CONTROL}`;
    rows.push(
      finding(`${name}: area with a constant comment`, control, 'area', bar, control > MIN_CONTROL),
    );
  }
  for (const line of weightiest(against(hidden))) print(line);
  return rows;
}

const TRAINERS: [string, Train][] = [
  ['logistic regression', trainLogistic],
  ['boosted trees', trainTrees()],
];

function areaFor(train: Train, cases: readonly Case[], seed: number) {
  const scores = crossValidate(createSeededRandom(seed), cases, {
    folds: FOLDS,
    train,
    prepare: (training) => learnEncoding(training).rowOf,
  });
  return aucOf(
    scores,
    cases.map(({ label }) => label),
  );
}

/** Features with the largest gain in trees that are trained with all cases, which overstates them. */
function weightiest(cases: readonly Case[]): string[] {
  const { names, rowOf } = learnEncoding(cases.map(({ value }) => value));
  const gains = new Float64Array(names.length);
  trainTrees(gains)(
    cases.map(({ value }) => rowOf(value)),
    cases.map(({ label }) => label),
  );
  const total = gains.reduce((sum, gain) => sum + gain, 0);
  return [...gains.entries()]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, SHOWN)
    .map(([at, gain]) => `${((100 * gain) / total).toFixed(0)} % of the trees' gain: ${names[at]}`);
}

type Kind = 'ordinary' | 'hidden' | 'marked';
type Job = { kind: Kind; at: number };
type Observed = Record<Kind, ObservedRental[]>;

/** Rents in random order, so that nothing depends on the time at which a kind runs. */
export async function observeAll({
  rentals,
  seed,
  print,
}: {
  rentals: number;
  seed: number;
  print: Print;
}): Promise<Observed> {
  const random = createSeededRandom(seed);
  const jobsOf = (kind: Kind, length: number) =>
    Array.from({ length }, (_, at): Job => ({ kind, at }));
  const jobs = [
    ...jobsOf('ordinary', rentals),
    ...jobsOf('hidden', rentals),
    ...jobsOf('marked', Math.ceil((rentals * CONTROLS) / RENTALS)),
  ]
    .map((job) => ({ job, key: random.int(2 ** 30) }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ job }) => job);
  const seen: Observed = { ordinary: [], hidden: [], marked: [] };
  const market = await createObservedMarket(NODES);
  try {
    const next = jobs.values();
    await Promise.all(
      market.nodes.map(async (node) => {
        for (const { kind, at } of next) {
          seen[kind].push(await observed(kind, { market, node, at }, print));
          const done = seen.ordinary.length + seen.hidden.length + seen.marked.length;
          if (done % 100 === 0) print(`${done} of ${jobs.length} rentals`);
          await market.untilFree(node);
        }
      }),
    );
    return seen;
  } finally {
    await market.close();
  }
}

const ATTEMPTS = 3;

/** Repeats a rental whose first command the host has not seen, as on a busy computer. */
async function observed(kind: Kind, place: Place, print: Print): Promise<ObservedRental> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await rentAs(kind, place);
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
      print(`${kind} rental repeated: ${messageOf(error)}`);
      await place.market.endAll(place.node);
      await place.market.untilFree(place.node);
    }
  }
}

type Place = { market: ObservedMarket; node: string; at: number };

function rentAs(kind: Kind, place: Place): Promise<ObservedRental> {
  if (kind === 'ordinary') return replay(halfOf(ORDINARY_RENTALS, 'second'), place);
  const keys = ORDINARY_USE.keys.map((key) => ({ ...key, comment: CONSTANT_COMMENT }));
  return rentHidden(kind === 'marked' ? { ...ORDINARY_USE, keys } : ORDINARY_USE, place);
}

/** Rents with the product's own code, until the host has seen the beginning of the program. */
async function rentHidden(use: OrdinaryUse, { market, node }: Place): Promise<ObservedRental> {
  const store = await openEvidenceStore(':memory:');
  const client = createRenterClient({
    baseUrl: market.api,
    apiKey: market.account.apiKey,
    clock: systemClock,
  });
  const rentals = createHiddenRentals({
    store,
    clock: systemClock,
    random: systemRandom,
    log: createLog({ name: 'probes', level: 'silent' }),
    policy: { ...readCheckPolicy(), hidden_rentals_per_day: 0 },
    use,
    readAccounts: () => ({
      secret: systemRandom.uuid(),
      accounts: [{ name: 'one', api_key: market.account.apiKey }],
    }),
    clientOf: () => client,
    logIn: createOpensshLogin(systemClock),
    listed: () => [node],
    usdPerDay: 1_000_000,
    holdsLease: async () => true,
  });
  try {
    const seen = market.nextRental(node);
    await rentals.rentInFirstFreeMoment(node);
    await rentals.runOnce();
    const rental = await seen.finally(() => rentals.close());
    const [row] = await store.selectFrom('hidden_rentals').select('pod_id').execute();
    await client.end(row?.pod_id ?? '');
    return rental;
  } finally {
    await store.destroy();
  }
}

const POLLS = 60;

/** Rents as a recorded session: with a recorded request, a key of ssh-keygen, and the client and command of the README. */
async function replay(
  { requests, keys, courses }: OrdinaryRentals,
  { market, node, at }: Place,
): Promise<ObservedRental> {
  const course = nth(courses, at);
  const folder = mkdtempSync(join(tmpdir(), 'podwright-renter-'));
  const headers = market.account.key;
  try {
    const file = join(folder, 'key');
    const publicKey = await makeKey(file, nth(keys, at));
    const seen = market.nextRental(node);
    const bodies = requests.filter(isCopied).map((request) => bodyFor(market, request));
    const path = await rentFirst({ market, node, at }, bodies, publicKey);
    const command = await commandOf(market, { path, pollMs: course.poll_ms });
    await systemClock.sleep(course.login_after_ms);
    const [rental] = await Promise.all([seen, logIn(command, { file, locale: course.locale })]);
    await market.call('DELETE', path, { headers });
    return rental;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const run = promisify(execFile);

/** Makes a key with ssh-keygen. Returns the public key. */
async function makeKey(
  file: string,
  { type, bits, comment }: OrdinaryRentals['keys'][number],
): Promise<string> {
  const form = ['-t', type, '-b', String(bits), '-C', comment];
  await run('ssh-keygen', ['-q', '-N', '', '-f', file, ...form]);
  return readFileSync(`${file}.pub`, 'utf8').trim();
}

type Request = OrdinaryRentals['requests'][number];

/** The recorded request, without the test's name; null means absent. */
function bodyFor(
  { templates }: ObservedMarket,
  { test, template, others, ...members }: Request,
): Record<string, unknown> {
  const present = Object.entries(members).filter(([, value]) => value !== null && value !== false);
  return { ...Object.fromEntries(present), template_id: templates[template ?? 0] };
}

const MAX_REFUSED = 10;

/** Sends the recorded request, or the next one that this node accepts. Returns the path of the pod. */
async function rentFirst(
  { market, node, at }: Place,
  bodies: readonly Record<string, unknown>[],
  publicKey: string,
): Promise<string> {
  for (let refused = 0; refused < MAX_REFUSED; refused += 1) {
    const { status, body } = await market.call('POST', `/executors/${node}/rent`, {
      headers: market.account.key,
      body: { ...nth(bodies, at + refused), user_public_key: publicKey },
    });
    if (status === 200) return `/pods/${body['id']}`;
  }
  throw new Error('the node accepts none of the recorded requests');
}

/** Reads the pod until it runs. Returns its command for logins. */
async function commandOf(
  { call, account }: ObservedMarket,
  { path, pollMs }: { path: string; pollMs: number },
): Promise<string> {
  for (let poll = 0; poll < POLLS; poll += 1) {
    const { body } = await call('GET', path, { headers: account.key });
    const { status, ssh_connect_cmd: command } = body;
    if (status === 'RUNNING' && typeof command === 'string') return command;
    await systemClock.sleep(pollMs);
  }
  throw new Error(`${path} does not run`);
}

/** Logs in with the options and the command of the README. */
async function logIn(
  connect: string,
  { file, locale }: { file: string; locale: string | null },
): Promise<void> {
  const [program = '', ...words] = connect.split(' ');
  const options = ['-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null'];
  const command = ['-n', '-i', file, 'echo "hello from $(hostname)"'];
  const { PATH, HOME } = process.env;
  const language = locale === null ? {} : { LANG: locale };
  await run(program, [...words, ...options, ...command], { env: { PATH, HOME, ...language } });
}

function nth<T>(values: readonly T[], at: number): T {
  const value = values[at % values.length];
  if (value === undefined) throw new Error('nothing was recorded');
  return value;
}
