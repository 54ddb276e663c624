import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { configuredSecrets, inspectConfig } from '#shared/runtime/config.ts';
import { CENTRAL_CONFIG } from './central/config.ts';
import { readValidatorConfig, VALIDATOR_CONFIG } from './config.ts';

const HOTKEY = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY';
const CENTRAL = { CENTRAL_GATEWAY_URL: 'http://127.0.0.1:8090', CENTRAL_GATEWAY_HOTKEY: HOTKEY };
const VALIDATOR = {
  VALIDATOR_CENTRAL_URL: 'http://127.0.0.1:8000/api',
  VALIDATOR_CENTRAL_HOTKEY: HOTKEY,
};

it.each<[string, string, RegExp | null]>([
  ['DATABASE', '/srv/central.db', null],
  ['DATABASE', 'postgres://me:hush@db.example:5432/podwright', null],
  ['DATABASE', 'postgres://me:hush@/podwright?host=/run/postgresql', null],
  ['DATABASE', 'mysql://me:hush@db.example/podwright', /mysql:\/\/ is not supported/],
  ['DATABASE', ':memory:', /DATABASE: everything would be lost when the process ends/],
  ['DATABASE', ':temporary:', /DATABASE: everything would be lost when the process ends/],
  ['DATABASE', 'file:x?mode=memory', /DATABASE: write the path of the file alone/],
  [
    'DATABASE',
    'postgres://me:hush@db.example:99999/podwright',
    /not the address of a PostgreSQL server/,
  ],
  ['DATABASE_POOL_SIZE', '100', null],
  ['DATABASE_POOL_SIZE', '3', /DATABASE_POOL_SIZE \("3"\): .*>=4/],
  ['DATABASE_POOL_SIZE', '501', /DATABASE_POOL_SIZE \("501"\): .*<=500/],
  ['DATABASE_STATEMENT_SECONDS', '300', null],
  ['DATABASE_STATEMENT_SECONDS', '0', /DATABASE_STATEMENT_SECONDS \("0"\): .*>=1/],
  ['DATABASE_LOCK_SECONDS', '29', null],
  [
    'DATABASE_LOCK_SECONDS',
    '30',
    /DATABASE_LOCK_SECONDS \(30\): must be less than .*_DATABASE_STATEMENT_SECONDS \(30\)/,
  ],
  ['METRICS_LISTEN', '127.0.0.1:9101', null],
  ['METRICS_LISTEN', '127.0.0.2:8000', null],
  ['METRICS_LISTEN', '0.0.0.0:8000', /port 8000 is already used by .*_HOST and .*_PORT/],
])('central API and validator accept or reject %s=%s alike: %s', (name, value, refusal) => {
  const port = '8000';
  const looks = [
    inspectConfig(CENTRAL_CONFIG, { ...CENTRAL, CENTRAL_PORT: port, [`CENTRAL_${name}`]: value }),
    inspectConfig(VALIDATOR_CONFIG, {
      ...VALIDATOR,
      VALIDATOR_PORT: port,
      [`VALIDATOR_${name}`]: value,
    }),
  ];
  const problems = looks.flatMap((look) => look.problems.map(({ message }) => message));
  const expected = refusal === null ? [] : looks.map(() => expect.stringMatching(refusal));
  expect(problems).toEqual(expected);
  expect(problems.join()).not.toContain('hush');
});

it('retains verdicts without a limit, or at least as long as documents', () => {
  expect(readValidatorConfig(VALIDATOR).VALIDATOR_VERDICT_DAYS).toBeUndefined();
  const read = (days: string) =>
    readValidatorConfig({ ...VALIDATOR, VALIDATOR_VERDICT_DAYS: days }).VALIDATOR_VERDICT_DAYS;
  expect(read('14')).toBe(14);
  expect(() => read('13')).toThrow(
    'VALIDATOR_VERDICT_DAYS must not be smaller than VALIDATOR_EVIDENCE_DAYS',
  );
});

const SECRET_TEXT = 'postgres://me:hush@db.example:5432/podwright';
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-secrets-'));
  writeFileSync(join(folder, 'secret'), `${SECRET_TEXT}\n`, { mode: 0o600 });
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Names of variables that contain a secret, except those that name a file. */
const SECRET_NAME = /(?:SECRET|PASSWORD|TOKEN|PASSPHRASE|_DATABASE$|SMTP_URL|ACCESS_KEY$)/;
const OF_FILES = /_(?:FILE|URL)$/;

it.each([CENTRAL_CONFIG, VALIDATOR_CONFIG])(
  'reads every secret of $prefix from a file, and never prints it',
  ({ schema, prefix }) => {
    const spec = { schema, prefix } as typeof CENTRAL_CONFIG;
    const names = Object.keys(schema.shape).filter(
      (name) => SECRET_NAME.test(name) && (!OF_FILES.test(name) || name === 'CENTRAL_SMTP_URL'),
    );
    expect(names).toContain(`${prefix}DATABASE`);
    for (const name of names) {
      const environment = { [`${name}_FILE`]: join(folder, 'secret') };
      const { settings, warnings } = inspectConfig(spec, environment);
      const setting = settings.find((each) => each.name === name);
      expect(setting).toEqual({ name, source: 'file', value: expect.any(String) });
      expect(setting?.value).not.toContain('hush');
      expect(configuredSecrets(spec, environment)).toContain(SECRET_TEXT);
      expect(warnings).toEqual([]);
    }
  },
);
