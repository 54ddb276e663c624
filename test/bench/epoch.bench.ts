/** Memory of an epoch over a full window of a large fleet, and the longest time for which it blocks the event loop. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { openEvidenceStore } from '../../validator/store/evidence-store.ts';
import type { EvidenceStore } from '../../validator/store/tables.ts';
import { insertCycle } from '../../validator/weights/cycle.store.ts';
import type { CycleEntry } from '../../validator/weights/cycle-set.ts';
import { createEpochs } from '../../validator/weights/epoch.service.ts';
import { BURN, entryOf, goldenPolicy, hotkey } from '../fixtures/cycle-set.ts';
import { collectGarbage } from '../measure/collect-garbage.ts';
import { type Row, ratioAtMost, valueAtMost } from '../measure/row.ts';

const FLEET = 10_000;
const HOTKEYS = 200;
const CYCLE_MS = 900_000;
const MIB = 1_048_576;
const KIB_PER_MIB = 1_024;
const NS_PER_MS = 1e6;
/** Time after which the event-loop monitor has recorded the delay of earlier work. */
const SETTLE_MS = 20;
/** Value that resets the peak memory when written to /proc/PID/clear_refs (proc(5)). */
const BEGIN_PEAK = '5';

const MAX_MIB = 256;
const MAX_BLOCK_SHARE = 0.1;

/** Measures two rows: peak memory and the longest event-loop delay. */
export async function epochCosts(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-bench-'));
  const store = await openEvidenceStore(join(folder, 'ledger.db'));
  try {
    const policy = goldenPolicy();
    const textMib = await fill(store, policy.window_cycles);
    const hotkeys = Array.from({ length: HOTKEYS }, (_, at) => hotkey(at + 1));
    const neurons = hotkeys.map((key, uid) => ({ uid, hotkey: key }));
    const epochs = createEpochs({
      store,
      clock: systemClock,
      policy,
      embedded: false,
      cycleMs: CYCLE_MS,
      epochMs: 0,
      retentionDays: 14,
      trusted: [],
      signer: { hotkey: BURN, sign: () => new Uint8Array(64) },
      log: createLog({ name: 'bench', level: 'silent' }),
      metagraph: { read: async () => ({ block: null, neurons }) },
    });
    const delay = monitorEventLoopDelay({ resolution: 1 });
    collectGarbage();
    const before = process.memoryUsage.rss() / MIB;
    writeFileSync('/proc/self/clear_refs', BEGIN_PEAK);
    delay.enable();
    await systemClock.sleep(SETTLE_MS);
    const beganMs = systemClock.monotonicMs();
    if (!(await epochs.computeDue())) throw new Error('no epoch was computed');
    const ms = systemClock.monotonicMs() - beganMs;
    await systemClock.sleep(SETTLE_MS);
    delay.disable();
    const of = `${policy.window_cycles} cycles of ${FLEET}`;
    const memory = { ours: peakMib() - before, reference: textMib };
    const stop = { ours: delay.max / NS_PER_MS, reference: ms };
    return [
      valueAtMost(`memory of an epoch over ${of}`, 'MiB', 'their text', memory, MAX_MIB),
      ratioAtMost(
        `an epoch over ${of}: longest block of the event loop`,
        'ms',
        'its duration',
        stop,
        MAX_BLOCK_SHARE,
      ),
    ];
  } finally {
    await store.destroy();
    rmSync(folder, { recursive: true });
  }
}

/** Fills the store and returns the MiB of text written. */
async function fill(store: EvidenceStore, cycles: number): Promise<number> {
  const keys = Array.from({ length: HOTKEYS }, (_, at) => hotkey(at + 1));
  let bytes = 0;
  for (let number = 1; number <= cycles; number += 1) {
    const rows = Array.from({ length: FLEET }, (_, at) => {
      const base = { hotkey: keys[at % HOTKEYS] ?? BURN, uptime_minutes: number * 15 };
      const entry: CycleEntry = { ...ENTRY, ...base, ...entryIds(at), rented: at % 3 === 0 };
      const entry_json = canonicalJson(entry);
      bytes += entry_json.length;
      const { executor_id, verdict, failure_ppm } = entry;
      return {
        cycle: number,
        executor_id,
        verdict,
        failure_ppm,
        entry_json,
        length_ms: CYCLE_MS,
      };
    });
    await store
      .transaction()
      .execute((tx) => insertCycle(tx, { number, ended_ms: number * CYCLE_MS }, rows));
  }
  return bytes / MIB;
}

const ENTRY = entryOf(1);

/** Ids of an entry, without the hotkey that the fixture derives for each. */
function entryIds(at: number): Pick<CycleEntry, 'executor_id' | 'evidence_id'> {
  const digits = String(at).padStart(12, '0');
  return {
    executor_id: `00000000-0000-4000-8000-${digits}`,
    evidence_id: digits.padStart(64, '0'),
  };
}

/** VmHWM of /proc, in MiB. */
function peakMib(): number {
  const status = readFileSync('/proc/self/status', 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / KIB_PER_MIB;
}
