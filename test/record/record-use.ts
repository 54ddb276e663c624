/**
 * Records ordinary use of the product anew: the rent requests of its tests, keys of ssh-keygen, and the sessions of its
 * READMEs. Writes the recording, and derives what hidden rentals copy from its first half.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import { createTestMarket } from '../fakes/scenes/market-fixture.ts';
import type { RecordedRequest } from '../fakes/scenes/rental-recorder.ts';
import { createSeededRandom } from '../fakes/seeded-random.ts';
import { halfOf, isCopied, type OrdinaryRentals } from '../fixtures/ordinary-rentals.ts';
import { deriveUse } from './derive-use.ts';
import { recordCourses } from './record-courses.ts';
import { recordKeys } from './record-keys.ts';

type Request = OrdinaryRentals['requests'][number];
export type RecordOptions = {
  seed: number;
  keys: number;
  /** Runs of each session with each locale. */
  rounds: number;
  /** Folders with tests in one process that rent through the routes of a central API. */
  tests: readonly string[];
  print(line: string): void;
};

const ROOT = join(import.meta.dirname, '../..');
const RECORDING = join(ROOT, 'test/fixtures/ordinary-rentals.json');
const DERIVED = join(ROOT, 'validator/probes/ordinary-use.json');

export async function recordUse({ seed, print, ...amounts }: RecordOptions): Promise<void> {
  const keys = await recordKeys(createSeededRandom(seed), amounts.keys);
  print(`${keys.length} keys`);
  const courses = await recordCourses(amounts.rounds, print);
  const requests = await recordRequests(amounts.tests);
  const copied = requests.filter(isCopied).length;
  print(`${requests.length} rent requests, ${copied} of which hidden rentals can copy`);
  writeRecording({ requests, keys, courses });
}

/** Sorts all entries, so that both halves have as many of each kind. */
export function writeRecording({ requests, keys, courses }: OrdinaryRentals): void {
  const rentals = { requests: sorted(requests), keys: sorted(keys), courses: sorted(courses) };
  writeFileSync(RECORDING, linesOf(rentals));
  writeFileSync(DERIVED, linesOf(deriveUse(halfOf(rentals, 'first'))));
}

const sorted = <T>(entries: readonly T[]): T[] =>
  entries.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));

/** JSON with one line for each entry of a list. */
function linesOf(lists: Record<string, readonly unknown[]>): string {
  const parts = Object.entries(lists).map(([name, entries]) => {
    const lines = entries.map((entry) => `    ${JSON.stringify(entry)}`);
    return `  ${JSON.stringify(name)}: [\n${lines.join(',\n')}\n  ]`;
  });
  return `{\n${parts.join(',\n')}\n}\n`;
}

export async function recordRequests(tests: readonly string[]): Promise<Request[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-use-'));
  const file = join(folder, 'requests');
  try {
    writeFileSync(file, '');
    const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
    const run = spawn(process.execPath, [vitest, 'run', ...tests, '--project', 'main'], {
      cwd: ROOT,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, RECORD_RENTALS: file },
    });
    await once(run, 'exit');
    return await readRequests(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Members that the host does not see, or that are recorded elsewhere. */
const LEFT_OUT = ['user_public_key', 'skip_add_agent_ssh_key', 'enable_volume_encryption'];

async function readRequests(file: string): Promise<Request[]> {
  const official = await officialTemplates(`${file}.sqlite`);
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  return lines.map((line) => requestIn(JSON.parse(line), official));
}

function requestIn({ test, body }: RecordedRequest, official: readonly string[]): Request {
  const { pod_name, template_id, enable_jupyter, ...rest } = body;
  const numbers = {
    gpu_count: null,
    initial_port_count: null,
    termination_hours: null,
    max_spend_usd: null,
    idle_shutdown_minutes: null,
  };
  const isNumber = (name: string) => Object.hasOwn(numbers, name);
  const sent = Object.entries(rest).filter(
    ([name, value]) => value !== null && !LEFT_OUT.includes(name),
  );
  const place = official.indexOf(String(template_id));
  return {
    template: place < 0 ? null : place,
    ...numbers,
    ...Object.fromEntries(sent.filter(([name]) => isNumber(name))),
    enable_jupyter: enable_jupyter === true,
    others: sent.map(([name]) => name).filter((name) => !isNumber(name)),
    pod_name: String(pod_name),
    test,
  };
}

/** Ids of the official templates, in the market's order. */
async function officialTemplates(databaseFile: string): Promise<string[]> {
  const market = await createTestMarket({ db: await openCentralDatabase(databaseFile) });
  try {
    const { body } = await market.call('GET', '/templates');
    const templates = body as { id: string; user_id: string | null }[];
    return templates.filter(({ user_id: owner }) => owner === null).map(({ id }) => id);
  } finally {
    await market.close();
  }
}
