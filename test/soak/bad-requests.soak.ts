/**
 * Sends ten thousand generated bad requests to a real process of the central API and checks its responses and memory.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { createFuzz, FUZZ_STATUSES, type FuzzRequest, isEndless } from '../fakes/faults/fuzz.ts';
import { type CentralProcess, startCentralProcess } from '../fakes/scenes/central-process.ts';
import { createSeededRandom } from '../fakes/seeded-random.ts';
import { residentMb } from '../measure/process-usage.ts';
import { figureAtMost, median, type Row } from '../measure/row.ts';

/** Requests before the measurement, during which caches and heaps reach their usual size. */
const WARM_UP = 5_000;
const REQUESTS = 10_000;
const SAMPLE_EVERY = 250;
/** Requests before a new account is used: some of them change or delete the account. */
const REQUESTS_PER_ACCOUNT = 250;
const ANSWER_WITHIN_MS = 10_000;
const MOST_GROWTH_MB = 15;
/** Nothing listens at this address: routes that need an agent return 502. */
const GATEWAY = 'http://127.0.0.1:9';
const HOTKEY = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY';

export async function badRequests({
  seed,
  print,
}: {
  seed: number;
  print(line: string): void;
}): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-fuzz-'));
  const central = await startCentralProcess({
    CENTRAL_HOME: folder,
    CENTRAL_GATEWAY_URL: GATEWAY,
    CENTRAL_GATEWAY_HOTKEY: HOTKEY,
  });
  try {
    print(`fuzz: seed ${seed}`);
    const { wrong, memory } = await sendAll(central, seed, print);
    print(`central memory by ${SAMPLE_EVERY} requests, MB: ${memory.map(Math.round).join(' ')}`);
    const quarter = Math.floor(memory.length / 4);
    const growth = median(memory.slice(-quarter)) - median(memory.slice(0, quarter));
    return [
      figureAtMost('undocumented answers', wrong, 'answers', 0),
      figureAtMost(`memory over ${REQUESTS} bad requests`, growth, 'MB', MOST_GROWTH_MB),
    ];
  } finally {
    await central.end('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

async function sendAll(central: CentralProcess, seed: number, print: (line: string) => void) {
  const memory: number[] = [];
  let wrong = 0;
  let credentials: Record<string, string>[] = [];
  const document = (await central.call('GET', '/openapi.json')).body;
  const fuzz = createFuzz(document, createSeededRandom(seed), () => []);
  for (let index = 0; index < WARM_UP + REQUESTS; index += 1) {
    if (index % REQUESTS_PER_ACCOUNT === 0) credentials = await signUp(central, index);
    if (index >= WARM_UP && index % SAMPLE_EVERY === 0) {
      memory.push(residentMb(central.child.pid ?? 0));
    }
    const request = fuzz.next(index, credentials[index % 2] ?? {});
    if (isEndless(request.path)) continue;
    const status = await statusOf(central, request);
    if (FUZZ_STATUSES.has(status)) continue;
    wrong += 1;
    print(`answered ${status}: ${JSON.stringify(request).slice(0, 400)}`);
  }
  return { wrong, memory };
}

async function signUp(central: CentralProcess, index: number): Promise<Record<string, string>[]> {
  const body = { email: `fuzz${index}@example.com`, password: 'correct horse battery' };
  const { api_key: key } = (await central.call('POST', '/users', { body })).body;
  const { token } = (await central.call('POST', '/users/login', { body })).body;
  return [{ 'x-api-key': String(key) }, { authorization: `Bearer ${token}` }];
}

/** Returns the status, or 0 if no response arrived in time. */
async function statusOf(central: CentralProcess, request: FuzzRequest): Promise<number> {
  const { method, path, headers, body } = request;
  try {
    const response = await fetch(`${central.origin}/api${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      signal: systemClock.deadline(ANSWER_WITHIN_MS),
    });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
}
