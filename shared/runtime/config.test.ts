import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  allOrNone,
  ConfigError,
  configuredSecrets,
  inspectConfig,
  parseConfig,
  runConfigCommand,
  secret,
} from './config.ts';

const spec = {
  schema: z.object({
    AGENT_PORT: z.coerce.number().int().default(8080),
    AGENT_RANGE: z
      .string()
      .transform((text) => text.split('-'))
      .prefault('1-2'),
    AGENT_EXECUTOR_ID: z.uuid(),
    AGENT_MAIL: secret(z.url().optional()),
    AGENT_TOKEN: secret(z.string().min(8).optional()),
    AGENT_SOURCE: z.url().optional(),
  }),
  prefix: 'AGENT_',
  foreign: new Set(['AGENT_OF_OTHERS']),
  rules: (_: unknown, isSet: (name: string) => boolean) =>
    allOrNone(['AGENT_MAIL', 'AGENT_TOKEN'], isSet),
};
const ID = '3f9f41a6-0001-4000-8000-000000000001';
const folder = mkdtempSync(join(tmpdir(), 'podwright-config-'));
afterAll(() => rmSync(folder, { recursive: true }));
const inspect = (environment: Record<string, string | undefined>) =>
  inspectConfig(spec, environment);
const problemsIn = (environment: Record<string, string | undefined>) =>
  inspect(environment).problems.map(({ message }) => message);

it('reads the variables of the process and ignores others', () => {
  const environment = { AGENT_EXECUTOR_ID: ID, AGENT_PORT: '9000', PATH: '/bin' };
  const read = { AGENT_PORT: 9000, AGENT_RANGE: ['1', '2'], AGENT_EXECUTOR_ID: ID };
  expect(parseConfig(spec, environment)).toEqual(read);
});

it('counts an empty value as unset', () => {
  expect(parseConfig(spec, { AGENT_EXECUTOR_ID: ID, AGENT_PORT: '' }).AGENT_PORT).toBe(8080);
});

it('reports all problems at once, each with the value and what is allowed', () => {
  const wrong = { AGENT_PORT: 'x', AGENT_TOKEN: 'hush' };
  expect(() => parseConfig(spec, wrong)).toThrow(ConfigError);
  expect(problemsIn(wrong)).toEqual([
    'AGENT_PORT ("x"): Invalid input: expected number, received NaN',
    'AGENT_EXECUTOR_ID (not set): required',
    'AGENT_TOKEN ([hidden]): Too small: expected string to have >=8 characters',
    'AGENT_MAIL: not set; set all of AGENT_MAIL, AGENT_TOKEN, or none',
  ]);
});

it('warns about unknown variables and suggests the closest name', () => {
  const { config, warnings } = inspect({
    AGENT_EXECUTOR_ID: ID,
    AGENT_PROT: '1',
    AGENT_WEATHER: 'fair',
    AGENT_OF_OTHERS: 'x',
    AGENT_PORT_FILE: '/x',
  });
  expect(config).not.toBeNull();
  expect(warnings.map(({ message }) => message)).toEqual([
    'AGENT_PROT: unknown variable, ignored; did you mean AGENT_PORT?',
    'AGENT_WEATHER: unknown variable, ignored',
    'AGENT_PORT_FILE: unknown variable, ignored',
  ]);
});

describe('a secret', () => {
  it.each([
    ['with a bare percent sign', '50%off', '50%off'],
    ['percent-encoded', 'a%40b', 'a@b'],
  ])('is listed as written and percent-decoded if it is a password %s', (_, written, decoded) => {
    const AGENT_MAIL = `postgres://u:${written}@db.example/x`;
    expect(configuredSecrets(spec, { AGENT_MAIL })).toEqual([AGENT_MAIL, written, decoded]);
  });

  const both = { AGENT_EXECUTOR_ID: ID, AGENT_MAIL: 'smtp://me:hush@mail.example:25/x?p=hush' };

  it('can be read from a file', () => {
    const path = join(folder, 'token');
    writeFileSync(path, 'hush hush\n');
    const { config, settings } = inspect({ ...both, AGENT_TOKEN_FILE: path });
    expect(config?.AGENT_TOKEN).toBe('hush hush');
    expect(settings).toContainEqual({ name: 'AGENT_TOKEN', value: '[hidden]', source: 'file' });
    expect(problemsIn({ ...both, AGENT_TOKEN_FILE: path, AGENT_TOKEN: 'hush hush' })).toEqual([
      'AGENT_TOKEN and AGENT_TOKEN_FILE: set one of them',
    ]);
    expect(problemsIn({ ...both, AGENT_TOKEN_FILE: join(folder, 'none') })).toEqual([
      expect.stringMatching(/^AGENT_TOKEN_FILE \(.*none\): ENOENT/),
    ]);
  });

  it('is not read from a pipe, a binary file or a long file', () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const binary = join(folder, 'binary');
    writeFileSync(binary, 'hush\0hush');
    const long = join(folder, 'long');
    writeFileSync(long, 'x'.repeat(65_537));
    const why = (path: string) => problemsIn({ ...both, AGENT_TOKEN_FILE: path });
    expect(why(pipe)).toEqual([`AGENT_TOKEN_FILE (${pipe}): not a file`]);
    for (const path of [binary, long]) {
      expect(why(path)).toEqual([`AGENT_TOKEN_FILE (${path}): not one short text`]);
    }
  });

  it('is never printed', () => {
    const all = {
      ...both,
      AGENT_TOKEN: 'hush hush',
      AGENT_SOURCE: 'https://me:hush@x.example/a?token=hush&b=hush',
    };
    const shown = { out: '', error: '' };
    const printer = {
      out(text: string) {
        shown.out += text;
      },
      error(text: string) {
        shown.error += text;
      },
    };
    expect(runConfigCommand('--print-config', inspect(all), [], printer)).toBe(0);
    expect(shown.out.split('\n')).toEqual([
      'AGENT_PORT         default      8080',
      'AGENT_RANGE        default      1-2',
      `AGENT_EXECUTOR_ID  environment  ${ID}`,
      'AGENT_MAIL         environment  smtp://[hidden]@mail.example:25/x',
      'AGENT_TOKEN        environment  [hidden]',
      'AGENT_SOURCE       environment  https://[hidden]@x.example/a?token=[hidden]&b=[hidden]',
      '',
    ]);
    const wrong = { ...all, AGENT_MAIL: 'no hush', AGENT_SOURCE: '//me:hush@' };
    expect(runConfigCommand('--check-config', inspect(wrong), ['policy.json: bad'], printer)).toBe(
      6,
    );
    expect(shown.error).toContain('policy.json: bad');
    expect(shown.out + shown.error).not.toContain('hush');
  });
});
