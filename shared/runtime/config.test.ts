import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  allOrNone,
  ConfigError,
  lookAtConfig,
  parseConfig,
  runConfigCommand,
  secret,
  secretTexts,
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
  rules: (_: unknown, isGiven: (name: string) => boolean) =>
    allOrNone(['AGENT_MAIL', 'AGENT_TOKEN'], isGiven),
};
const ID = '3f9f41a6-0001-4000-8000-000000000001';
const folder = mkdtempSync(join(tmpdir(), 'podwright-config-'));
afterAll(() => rmSync(folder, { recursive: true }));
const look = (environment: Record<string, string | undefined>) => lookAtConfig(spec, environment);
const problemsIn = (environment: Record<string, string | undefined>) =>
  look(environment).problems.map(({ message }) => message);

it('reads its variables and ignores those of others', () => {
  const environment = { AGENT_EXECUTOR_ID: ID, AGENT_PORT: '9000', PATH: '/bin' };
  const read = { AGENT_PORT: 9000, AGENT_RANGE: ['1', '2'], AGENT_EXECUTOR_ID: ID };
  expect(parseConfig(spec, environment)).toEqual(read);
});

it('counts an empty value as unset', () => {
  expect(parseConfig(spec, { AGENT_EXECUTOR_ID: ID, AGENT_PORT: '' }).AGENT_PORT).toBe(8080);
});

it('names all problems at once, with what was given and what is allowed', () => {
  const wrong = { AGENT_PORT: 'x', AGENT_TOKEN: 'hush' };
  expect(() => parseConfig(spec, wrong)).toThrow(ConfigError);
  expect(problemsIn(wrong)).toEqual([
    'AGENT_PORT ("x"): Invalid input: expected number, received NaN',
    'AGENT_EXECUTOR_ID (not set): required',
    'AGENT_TOKEN ([hidden]): Too small: expected string to have >=8 characters',
    'AGENT_MAIL: set them too, or none of AGENT_MAIL, AGENT_TOKEN',
  ]);
});

it('warns of variables that nobody reads, with the name that may have been meant', () => {
  const { config, warnings } = look({
    ...{ AGENT_EXECUTOR_ID: ID, AGENT_PROT: '1', AGENT_WEATHER: 'fair', AGENT_OF_OTHERS: 'x' },
    AGENT_PORT_FILE: '/x',
  });
  expect(config).not.toBeNull();
  expect(warnings.map(({ message }) => message)).toEqual([
    'AGENT_PROT: unknown variable, nobody reads it; is AGENT_PORT meant?',
    'AGENT_WEATHER: unknown variable, nobody reads it',
    'AGENT_PORT_FILE: unknown variable, nobody reads it',
  ]);
});

describe('a secret', () => {
  it.each([
    ['with a bare %', '50%off', '50%off'],
    ['percent-encoded', 'a%40b', 'a@b'],
  ])('is told as it is written and as it is meant: %s', (_, written, meant) => {
    const AGENT_MAIL = `postgres://u:${written}@db.example/x`;
    expect(secretTexts(spec, { AGENT_MAIL })).toEqual([AGENT_MAIL, written, meant]);
  });

  const both = { AGENT_EXECUTOR_ID: ID, AGENT_MAIL: 'smtp://me:hush@mail.example:25/x?p=hush' };

  it('may be given in a file', () => {
    const path = join(folder, 'token');
    writeFileSync(path, 'hush hush\n');
    const { config, settings } = look({ ...both, AGENT_TOKEN_FILE: path });
    expect(config?.AGENT_TOKEN).toBe('hush hush');
    expect(settings).toContainEqual({ name: 'AGENT_TOKEN', value: '[hidden]', source: 'file' });
    expect(problemsIn({ ...both, AGENT_TOKEN_FILE: path, AGENT_TOKEN: 'hush hush' })).toEqual([
      'AGENT_TOKEN and AGENT_TOKEN_FILE: set one of them',
    ]);
    expect(problemsIn({ ...both, AGENT_TOKEN_FILE: join(folder, 'none') })).toEqual([
      expect.stringMatching(/^AGENT_TOKEN_FILE \(.*none\): ENOENT/),
    ]);
  });

  it('is not looked for in a pipe, nor in a file of other things', () => {
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

  it('is never shown', () => {
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
    expect(runConfigCommand('--print-config', look(all), [], printer)).toBe(0);
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
    expect(runConfigCommand('--check-config', look(wrong), ['policy.json: bad'], printer)).toBe(6);
    expect(shown.error).toContain('policy.json: bad');
    expect(shown.out + shown.error).not.toContain('hush');
  });
});
