import { expect, it } from 'vitest';
import { runCommand } from './run-command.ts';

const LIMITS = { timeoutMs: 10_000, maxOutputBytes: 1_000_000 };
const sh = (script: string, limits = LIMITS) => runCommand('/bin/sh', ['-c', script], limits);

it('returns the exit status and both outputs for any status', async () => {
  expect(await sh('echo out; echo err >&2; exit 14')).toEqual({
    exitCode: 14,
    stdout: 'out\n',
    stderr: 'err\n',
    ended: null,
  });
  expect(await sh('echo out')).toMatchObject({ exitCode: 0, stdout: 'out\n', ended: null });
});

it('kills a child that ignores SIGTERM at the timeout and returns its output', async () => {
  const script = 'trap "" TERM; echo begun; exec sleep 600';
  const result = await sh(script, { ...LIMITS, timeoutMs: 2_000 });
  expect(result).toMatchObject({ exitCode: null, stdout: 'begun\n', ended: 'timeout' });
});

it('kills a child that prints too much', async () => {
  const result = await sh('yes', { ...LIMITS, maxOutputBytes: 10_000 });
  expect(result.ended).toBe('output_limit');
  expect(result.stdout.length).toBeLessThanOrEqual(10_000);
});

it('returns no exit status for a child that a signal killed', async () => {
  expect(await sh('kill -9 $$')).toMatchObject({ exitCode: null, ended: null });
});

it('passes arguments unchanged and only the given environment', async () => {
  const args = ['-c', 'printf "%s|" "$@"; env', 'sh', '$(id)', 'a b', ';'];
  const { stdout } = await runCommand('/bin/sh', args, { ...LIMITS, env: { ONLY: 'this' } });
  expect(stdout).toMatch(/^\$\(id\)\|a b\|;\|/);
  expect(stdout).toContain('ONLY=this');
  expect(stdout).not.toContain('HOME=');
});

it('rejects if the program does not exist', async () => {
  const missing = runCommand('/no/such/program', [], LIMITS);
  await expect(missing).rejects.toMatchObject({ code: 'ENOENT' });
});
