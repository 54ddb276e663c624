/** Faults that the validator's program and its doctor report. */
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePorts } from '../../test/fakes/free-ports.ts';
import {
  createValidatorDoctor,
  type ValidatorDoctor,
} from '../../test/fakes/scenes/validator-doctor.ts';

let doctor: ValidatorDoctor;
beforeAll(async () => {
  doctor = await createValidatorDoctor();
});
afterAll(() => doctor.close());

it('reports each failed check', async () => {
  writeFileSync(doctor.at('open.seed'), doctor.seed, { mode: 0o644 });
  writeFileSync(doctor.at('other.seed'), '09'.repeat(32), { mode: 0o600 });
  writeFileSync(doctor.at('broken.json'), '{}');
  const { first: nobody } = await freePorts(1);
  const [wrong, stranger, refused] = await Promise.all([
    doctor.findings({
      ...doctor.right,
      VALIDATOR_SEED_FILE: doctor.at('open.seed'),
      VALIDATOR_DATABASE: `postgres://me:hush@127.0.0.1:${nobody}/x`,
      VALIDATOR_CHECK_POLICY: doctor.at('broken.json'),
      VALIDATOR_METAGRAPH: doctor.at('broken.json'),
      VALIDATOR_PORT: String(nobody),
      VALIDATOR_CENTRAL_URL: `${doctor.central.origin}/api`.replace('http:', 'https:'),
      VALIDATOR_AGENT_IMAGE: `127.0.0.1:${nobody}/agent`,
    }),
    doctor.findings({
      ...doctor.right,
      VALIDATOR_SEED_FILE: doctor.at('other.seed'),
      VALIDATOR_PROT: '1',
      VALIDATOR_CENTRAL_HOTKEY: doctor.hotkey,
    }),
    doctor.findings({ VALIDATOR_PORT: 'x' }),
  ]);
  expect(wrong).toMatchObject({
    key: expect.stringMatching(/^fail: .*open.seed may be read by others/),
    ledger: expect.stringMatching(/^fail: /),
    policies: expect.stringMatching(/^fail: .*broken.json/),
    metagraph: expect.stringMatching(/^fail: /),
    central: expect.stringMatching(/^unknown: /),
    'central-hotkey': expect.stringContaining('the port answers plain HTTP; the doctor sent TLS'),
    gateway: expect.stringMatching(/^warn: no validator answers.*no program listens at the port$/),
    registry: expect.stringMatching(/^fail: 127.0.0.1:\d+\/agent:latest: /),
  });
  expect(JSON.stringify(wrong)).not.toContain('hush');
  expect(stranger).toMatchObject({
    configuration: expect.stringMatching(/^warn: VALIDATOR_PROT.*did you mean VALIDATOR_PORT/),
    metagraph: expect.stringMatching(/^fail: 5\w+ is not among the 1 registered hotkeys/),
    central: expect.stringMatching(/^fail: .* rejects our signature/),
    'central-hotkey': expect.stringMatching(
      new RegExp(`^fail: .* signs with 5\\w+, VALIDATOR_CENTRAL_HOTKEY is ${doctor.hotkey}: `),
    ),
    gateway: expect.stringMatching(/^fail: another validator answers/),
  });
  expect(Object.keys(refused)).toEqual(['configuration']);
});

it('rejects a key that other users can read, at the start and with --check-config', async () => {
  writeFileSync(doctor.at('shown.seed'), doctor.seed, { mode: 0o644 });
  const environment = { ...doctor.right, VALIDATOR_SEED_FILE: doctor.at('shown.seed') };
  const runs = [doctor.run([], environment), doctor.run(['--check-config'], environment)];
  for (const { exitCode, stderr } of await Promise.all(runs)) {
    expect(exitCode).toBe(6);
    expect(stderr).toMatch(/shown.seed may be read by others \(mode 644\): chmod 600/);
  }
});

it('exits with one line and status 1 if the next start may succeed', async () => {
  const [own, nobody] = [await freePorts(1), await freePorts(1)];
  const free = { ...doctor.right, VALIDATOR_PORT: String(own.first) };
  const taken = `127.0.0.1:${doctor.right['VALIDATOR_PORT']}`;
  const runs = [
    doctor.run([], { ...free, VALIDATOR_METRICS_LISTEN: taken }),
    doctor.run([], {
      ...doctor.right,
      VALIDATOR_DATABASE: `postgres://me:hush@127.0.0.1:${nobody.first}/x`,
    }),
  ];
  const sentences = [/is in use: .*VALIDATOR_METRICS_LISTEN\n$/, /ECONNREFUSED.*start the server/];
  for (const [index, { exitCode, stderr, ended }] of (await Promise.all(runs)).entries()) {
    expect({ exitCode, ended }).toEqual({ exitCode: 1, ended: null });
    expect(stderr).toMatch(sentences[index] ?? '');
    expect(stderr).toMatch(/^podwright validator: .*\n$/);
  }
});

it('reports a missing policy once', async () => {
  const absent = { ...doctor.right, VALIDATOR_CHECK_POLICY: doctor.at('none.json') };
  const { exitCode, stderr } = await doctor.run(['--check-config'], absent);
  expect([exitCode, stderr]).toEqual([
    6,
    `configuration refused:\n  there is no file ${doctor.at('none.json')}\n`,
  ]);
});
