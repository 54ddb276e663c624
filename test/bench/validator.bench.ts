/** Cost of a validator with a large fleet: signatures, memory, cycles and weights of 10,000 executors. */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Worker } from 'node:worker_threads';
import { createHttpServer } from '#shared/http/server.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { publicKeyOf } from '#shared/signing/hotkey.ts';
import { signedHeaders } from '#shared/signing/signed-request.ts';
import { type Signer, verifySr25519 } from '#shared/signing/sr25519.ts';
import { createEvidence } from '../../validator/evidence/evidence.service.ts';
import { findEvidence } from '../../validator/evidence/evidence.store.ts';
import { createGatewayAuth } from '../../validator/gateway/gateway.ts';
import { openEvidenceStore } from '../../validator/store/evidence-store.ts';
import type { EvidenceStore } from '../../validator/store/tables.ts';
import { computeWeights } from '../../validator/weights/compute-weights.ts';
import { createCycles } from '../../validator/weights/cycle.service.ts';
import type { CycleSet } from '../../validator/weights/cycle-set.ts';
import { testSigner } from '../fakes/scenes/market-fixture.ts';
import { checkRun } from '../fixtures/check-run.ts';
import { entryOf, goldenPolicy, hotkey, setOf } from '../fixtures/cycle-set.ts';
import { collectGarbage } from '../measure/collect-garbage.ts';
import { median, type Row, ratioAtLeast, ratioAtMost, valueAtMost } from '../measure/row.ts';
import { cpuSecondsOf } from './cpu-seconds.ts';
import { epochCosts } from './epoch.bench.ts';
import { fleetHealth } from './fleet-health.ts';
import type { RequestLoad } from './request-load.ts';

const FLEET = 10_000;
const THOUSAND = 1_000;
const MS_PER_SECOND = 1_000;
const MIB = 1_048_576;
const NS_PER_MS = 1e6;
const REQUESTS = 400;
const CONNECTIONS = 4;
const HOTKEYS = 200;
const RUNS = 9;

const MIN_SIGNATURE_SHARE = 0.8;
const MAX_MIB_PER_THOUSAND = 16;
const MAX_BLOCK_SHARE = 0.2;
const MAX_WEIGHING_RATIO = 5;
/** Passed checks whose evidence is stored, of hosts with eight cards. */
const PASSED = { executors: 100, rounds: 50 };
const MAX_EVIDENCE_BYTES = 2_048;

const log = createLog({ name: 'bench', level: 'silent' });

export async function validatorCosts(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-bench-'));
  const store = await openEvidenceStore(join(folder, 'ledger.db'));
  try {
    // Memory is measured first: garbage of the other rows would be counted as memory in use.
    const rows = [await memory(store), ...(await epochCosts()), await closing(store)];
    return [...rows, await signatures(), await weightSettings(), await evidenceSize(folder)];
  } finally {
    await store.destroy();
    rmSync(folder, { recursive: true });
  }
}

/**
 * Verifies requests that were signed in advance, each sent once; compared with the signature library on the same number
 * of messages.
 */
async function signatures(): Promise<Row> {
  const [signer, own] = [testSigner(5), testSigner(1)];
  const auth = createGatewayAuth({
    onPeerTime: () => undefined,
    clock: systemClock,
    log,
    audience: own.hotkey,
    central: signer.hotkey,
  });
  const server = createHttpServer({
    clock: systemClock,
    random: systemRandom,
    log,
    bodyLimitBytes: THOUSAND,
    verifyBody: auth.verifyBody,
  });
  auth.install(server);
  server.get('/signed', async () => ({ ok: true }));
  const url = new URL('/signed', await server.listen({ host: '127.0.0.1', port: 0 }));
  const key = publicKeyOf(signer.hotkey);
  if (key === null) throw new Error('no key');
  const message = systemRandom.bytes(300);
  const signature = signer.sign(message);
  const rates: { ours: number; reference: number }[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    const caller = { audience: own.hotkey, signer, random: systemRandom };
    const signed = await Promise.all(
      Array.from({ length: REQUESTS }, () =>
        signedHeaders(caller, { method: 'GET', url, body: '', timestampMs: systemClock.now() }),
      ),
    );
    const bare = await cpuSecondsOf(async () => {
      for (let at = 0; at < REQUESTS; at += 1) verifySr25519(message, signature, key);
    });
    const texts = signed.map((headers) => requestText(url, headers));
    const served = await cpuSecondsOf(() =>
      sendFromElsewhere({ url: url.href, texts, connections: CONNECTIONS }),
    );
    rates.push({ ours: REQUESTS / served, reference: REQUESTS / bare });
  }
  await server.close();
  const measured = {
    ours: median(rates.map(({ ours }) => ours)),
    reference: median(rates.map(({ reference }) => reference)),
  };
  const against = 'the library alone, no HTTP';
  return ratioAtLeast('signature checks over HTTP', '1/s', against, measured, MIN_SIGNATURE_SHARE);
}

function requestText({ pathname, host }: URL, headers: Record<string, string>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${pathname} HTTP/1.1\r\nhost: ${host}\r\n${lines.join('')}\r\n`;
}

/** Sends from a separate thread, so that its CPU time is not counted for the server. */
function sendFromElsewhere(load: RequestLoad): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./request-load.ts', import.meta.url), { workerData: load });
    worker.once('message', () => resolve());
    worker.once('error', reject);
  });
}

/** Growth of the database file by passed checks, after a first check of every executor. */
async function evidenceSize(folder: string): Promise<Row> {
  const file = join(folder, 'evidence.db');
  const before = await recordPassed(file, { rounds: 1, fromMs: 0 });
  const after = await recordPassed(file, { rounds: PASSED.rounds, fromMs: 900_000 });
  const ours = (after.bytes - before.bytes) / (PASSED.executors * PASSED.rounds);
  const measured = { ours, reference: after.textBytes };
  const against = 'text of a document';
  return valueAtMost('evidence of a passed check', 'bytes', against, measured, MAX_EVIDENCE_BYTES);
}

/** Records passed checks, and returns the size of the closed database and of the text of a document. */
async function recordPassed(file: string, { rounds, fromMs }: { rounds: number; fromMs: number }) {
  const store = await openEvidenceStore(file);
  const signer = testSigner(1);
  const options = { store, signer, trusted: [signer], clock: systemClock, log };
  const evidence = createEvidence({ ...options, policy: goldenPolicy() });
  let id = '';
  for (let round = 0; round < rounds; round += 1) {
    for (let number = 0; number < PASSED.executors; number += 1) {
      const atMs = fromMs + round * 900_000 + number * 997;
      id = await evidence.record(checkRun({ number, gpus: 8, atMs }));
    }
  }
  const text = (await findEvidence(store, id))?.document ?? '';
  await store.destroy();
  return { bytes: statSync(file).size, textBytes: Buffer.byteLength(text) };
}

/** Measures the pure function on one cycle. */
async function weightSettings(): Promise<Row> {
  const hotkeys = Array.from({ length: HOTKEYS }, (_, at) => hotkey((at % 250) + 2));
  const entries = Array.from({ length: FLEET }, (_, at) =>
    entryOf(at, { hotkey: hotkeys[at % HOTKEYS] ?? hotkey(2), rented: at % 3 === 0 }),
  );
  // The document as the store returns it.
  const input = JSON.parse(canonicalJson(setOf([entries]))) as CycleSet;
  const policy = goldenPolicy();
  const times: number[] = [];
  const writing: number[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    times.push(await cpuSecondsOf(async () => computeWeights(input, policy)));
    writing.push(await cpuSecondsOf(async () => JSON.stringify(input)));
  }
  const measured = {
    ours: median(times) * MS_PER_SECOND,
    reference: median(writing) * MS_PER_SECOND,
  };
  const against = 'JSON.stringify of the input';
  return ratioAtMost(`weighing ${FLEET} executors`, 'ms', against, measured, MAX_WEIGHING_RATIO);
}

/** Peak memory of a pass over the whole fleet, whose agents answer at once. */
async function memory(store: EvidenceStore): Promise<Row> {
  let most = 0;
  // Nothing here waits for I/O, so memory can only be sampled at this point.
  const onLook = () => {
    most = Math.max(most, process.memoryUsage.rss());
  };
  // A fake signature: signing costs time, not memory.
  const signer: Signer = { hotkey: hotkey(1), sign: () => new Uint8Array(64) };
  const health = fleetHealth(store, { fleet: FLEET, signer, onLook });
  collectGarbage();
  const before = process.memoryUsage.rss();
  await health.runOnce();
  const ours = (most - before) / MIB / (FLEET / THOUSAND);
  const { facts } = checkRun({ atMs: 0 });
  const reference = (JSON.stringify(facts.inventory).length * THOUSAND) / MIB;
  const against = 'text of their inventories';
  const measured = { ours, reference };
  return valueAtMost(
    `memory of a pass over ${FLEET}, per 1,000`,
    'MiB',
    against,
    measured,
    MAX_MIB_PER_THOUSAND,
  );
}

/** Closes the cycle after that pass and measures the longest event-loop delay. */
async function closing(store: EvidenceStore): Promise<Row> {
  const cycleMs = 86_400_000;
  const clock = { ...systemClock, now: () => systemClock.now() + 2 * cycleMs };
  const cycles = createCycles({ store, clock, log, policy: goldenPolicy(), cycleMs });
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const seconds = await secondsOf(() => cycles.closeEnded());
  delay.disable();
  const measured = { ours: delay.max / NS_PER_MS, reference: seconds * MS_PER_SECOND };
  return ratioAtMost(
    `closing a cycle of ${FLEET}: longest block of the event loop`,
    'ms',
    'its duration',
    measured,
    MAX_BLOCK_SHARE,
  );
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const beganMs = systemClock.monotonicMs();
  await work();
  return (systemClock.monotonicMs() - beganMs) / MS_PER_SECOND;
}
