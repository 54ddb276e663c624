import { expect, it } from 'vitest';
import { inspectConfig } from '#shared/runtime/config.ts';
import { CENTRAL_CONFIG } from './central/config.ts';
import { VALIDATOR_CONFIG } from './config.ts';

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
  ['DATABASE', 'file:x?mode=memory', /DATABASE: write the path of the file alone/],
  [
    'DATABASE',
    'postgres://me:hush@db.example:99999/podwright',
    /not the address of a PostgreSQL server/,
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
