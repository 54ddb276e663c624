import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Enrolment, signEnrolment, writeEnrolment } from '#shared/api/agent/identity.ts';
import { findingsOf } from '#shared/check/doctor.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { openIdentity } from '#shared/signing/identity.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { ENROLMENT_CHECKS, readEnrolmentFacts } from './enrolment.check.ts';

const DAY_MS = 86_400_000;
const EXECUTOR = systemRandom.uuid();
const clock = createManualClock();
const provider = createSigner(systemRandom.bytes(32));

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'podwright-enrolment-'));
});
afterEach(() => rmSync(home, { recursive: true }));

function enrol(change: (signed: Enrolment) => Enrolment = (signed) => signed, days = 30): void {
  const { publicKey } = openIdentity(home, systemRandom);
  const expires_ms = clock.now() + days * DAY_MS;
  const request = { executor_id: EXECUTOR, public_key: publicKey, expires_ms };
  writeEnrolment(home, change(signEnrolment(request, provider)), systemRandom);
}

const judged = async (executorId: string | null = EXECUTOR) =>
  findingsOf(ENROLMENT_CHECKS, await readEnrolmentFacts(clock, home, executorId));

it('reports an agent that is not enrolled, and writes no file', async () => {
  expect(await judged()).toMatchObject([{ id: 'enrolment', status: 'fail' }]);
  expect(readdirSync(home)).toEqual([]);
});

it.each<[string, string, () => void]>([
  ['ok', `by ${provider.hotkey}, for 30 more days`, () => enrol()],
  ['warn', 'for 13 more days', () => enrol(undefined, 13)],
  ['fail', 'has expired', () => enrol(undefined, 0)],
  ['fail', 'of another key', () => enrol((signed) => ({ ...signed, public_key: '00'.repeat(32) }))],
  [
    'fail',
    'of another executor',
    () => enrol((signed) => ({ ...signed, executor_id: systemRandom.uuid() })),
  ],
  [
    'fail',
    'not signed by',
    () => enrol((signed) => ({ ...signed, expires_ms: signed.expires_ms + 1 })),
  ],
])('reports the enrolment as %s: %s', async (status, words, arrange) => {
  arrange();
  const [found] = await judged();
  expect(found).toMatchObject({ status, finding: expect.stringContaining(words) });
});

it('checks only the key of an enrolment if no executor id is configured', async () => {
  enrol();
  expect(await judged(null)).toMatchObject([{ status: 'ok' }]);
});
