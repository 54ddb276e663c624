/** Check of the key set that the agent has accepted. Only reads: the agent may run. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fail, type Outcome, ok, unread, warn } from '#shared/check/check.ts';
import type { DoctorCheck } from '#shared/check/doctor.ts';
import { type Observed, observe } from '#shared/check/observe.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { openSqliteReadOnly } from '#shared/runtime/sqlite.ts';
import type { RootKeySet, RootKeys } from '#shared/updates/root-key-set.ts';
import { STORE_FILE } from '../database/database.ts';
import { keySetOf, trustUnder } from '../updates/key-trust.ts';
import { createUpdateStore } from '../updates/update.store.ts';

export type KeySetFacts = {
  nowMs: number;
  hasRoot: boolean;
  /** The accepted key set; null before the first. */
  keySet: Observed<RootKeySet | null>;
};

const READ_MS = 5_000;
const WARN_MS = 14 * 86_400_000;

export async function readKeySetFacts(options: {
  clock: Clock;
  home: string;
  /** AGENT_ROOT_KEYS; null if it is not set. */
  root: RootKeys | null;
}): Promise<KeySetFacts> {
  const { clock, home, root } = options;
  const keySet = await observe(clock, READ_MS, async () =>
    readKeySet(join(home, STORE_FILE), root),
  );
  return { nowMs: clock.now(), hasRoot: root !== null, keySet };
}

function readKeySet(path: string, root: RootKeys | null): RootKeySet | null {
  if (!existsSync(path)) return null;
  const database = openSqliteReadOnly(path);
  try {
    return keySetOf(trustUnder(root, createUpdateStore(database).get().trust));
  } finally {
    database.close();
  }
}

export const KEY_SET_CHECKS: readonly DoctorCheck<KeySetFacts>[] = [
  {
    id: 'key-set',
    detects: 'a key set that has expired or expires soon',
    required: 'a key set that is valid for another 14 days, or none and no AGENT_ROOT_KEYS',
    judge,
  },
];

function judge({ nowMs, hasRoot, keySet: observed }: KeySetFacts): Outcome {
  if ('problem' in observed) {
    return unread(observed, observed.problem, 'run the doctor as the agent’s user');
  }
  const set = observed.value;
  const remedy =
    'read `reason` in GET /update-status; if it is null, the marketplace has to publish its next key set';
  if (set === null) {
    if (!hasRoot) return ok('no key set was received: the configured keys are trusted');
    return warn('no key set of AGENT_ROOT_KEYS was received yet: no update is accepted', remedy);
  }
  const measured = `key set ${set.sequence}, expires ${naiveUtc(set.expires_at)}Z`;
  if (set.expires_at <= nowMs) {
    return fail(`${measured}: the agent accepts no update and none of its keys`, remedy);
  }
  return set.expires_at - nowMs < WARN_MS ? warn(measured, remedy) : ok(measured);
}
