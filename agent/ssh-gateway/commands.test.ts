import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { commandArgv, shellArgv } from '../access/exec/shell.ts';
import { mayBeSet, relayArgv, sftpArgv } from './commands.ts';

it('passes data as arguments, never in the text of a script', () => {
  const hostile = `'; touch /tmp/x; "$(id)"`;
  const [program, flag, script, name, ...values] = commandArgv(hostile);
  expect([program, flag, name]).toEqual(['/bin/sh', '-c', 'podwright']);
  expect(script).not.toContain('touch');
  expect(values).toEqual(['0', '0', hostile]);
  expect(shellArgv({ rows: 24, columns: 80 }).slice(4)).toEqual(['24', '80']);
  expect(relayArgv('127.0.0.1', 80).slice(4)).toEqual(['127.0.0.1', '80']);
  expect(sftpArgv().slice(4)).toEqual([
    '/.podwright/lib/ld.so',
    '/.podwright/lib',
    '/.podwright/sftp-server',
  ]);
});

it('runs the command in the image’s shell; the test uses the shell of this host', () => {
  const [program = '', ...args] = commandArgv('echo "$1|$0"; exit 0');
  expect(execFileSync(program, args, { encoding: 'utf8' })).toMatch(/^\|/);
});

it('allows clients to set a few harmless variables and those of the template', () => {
  const allowed = (name: string, value = 'x') => mayBeSet(name, value, ['COLOUR']);
  expect(['LANG', 'LC_ALL', 'TERM', 'COLOUR'].map((name) => allowed(name))).toEqual([
    true,
    true,
    true,
    true,
  ]);
  expect(['PATH', 'LD_PRELOAD', 'LC_', 'lang', ''].some((name) => allowed(name))).toBe(false);
  expect(allowed('LANG', 'a\0b')).toBe(false);
  expect(allowed('LANG', 'x'.repeat(4_097))).toBe(false);
});
