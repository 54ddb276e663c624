/** The validator's doctor as a process, with a real central API. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createValidatorDoctor,
  type ValidatorDoctor,
} from '../../test/fakes/scenes/validator-doctor.ts';

let doctor: ValidatorDoctor;
beforeAll(async () => {
  doctor = await createValidatorDoctor();
});
afterAll(() => doctor.close());

it('reports no failure for a valid configuration', async () => {
  expect(await doctor.findings(doctor.right)).toMatchObject({
    configuration: 'ok: every VALIDATOR_* variable is valid',
    key: `ok: ${doctor.hotkey} can sign`,
    'state-folder': expect.stringMatching(/^ok: .*, mode 0700$/),
    ledger: expect.stringMatching(/^ok: schema (\d+) of \1, \d+ rows$/),
    'ledger-file': 'ok: undamaged; 0 backups',
    policies: expect.stringMatching(/^ok: /),
    metagraph: 'ok: 1 registered',
    'probe-accounts': 'warn: no file is named: no hidden rentals',
    central: expect.stringMatching(/^ok: .* accepts our signature and lists 0 executors$/),
    'central-hotkey': expect.stringMatching(/^ok: .* signs with VALIDATOR_CENTRAL_HOTKEY$/),
    gateway: expect.stringMatching(/^ok: answers at /),
    registry: 'ok: VALIDATOR_AGENT_IMAGE is not set: no image is signed',
    'clock-skew': expect.stringMatching(/^ok: /),
  });
});

it('writes an archive without secrets', async () => {
  const out = doctor.at('diag.tar.gz');
  writeFileSync(
    doctor.at('validator.log'),
    `the seed is ${doctor.seed}\nAuthorization: hush\nthe last line\n`,
  );
  const diag = [
    'diag',
    '--out',
    out,
    '--log',
    doctor.at('validator.log'),
    '--log',
    doctor.at('none.log'),
  ];
  const written = await doctor.run(diag, {
    ...doctor.right,
    VALIDATOR_CHECK_POLICY: doctor.at('broken.json'),
  });
  const without = `podwright validator: --log: there is no file ${doctor.at('none.log')}\n`;
  // After 5 s, as on a busy computer, a line reports the progress.
  const stderr = written.stderr.replace(/^… collecting .*\n/gm, '');
  expect([written.exitCode, stderr]).toEqual([0, without]);
  expect(statSync(out).mode & 0o777).toBe(0o600);
  const archive = gunzipSync(readFileSync(out)).toString('utf8');
  for (const words of [
    'VALIDATOR_HOME ',
    'evidence: 0 rows',
    'the last line',
    'ok       central',
  ]) {
    expect(archive).toContain(words);
  }
  expect(archive).not.toMatch(new RegExp(`hush|${doctor.seed}`));
});
