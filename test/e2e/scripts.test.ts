import { globSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { runCommand } from '#shared/run-command.ts';

it('has shell scripts that shellcheck finds nothing in', async () => {
  const bounds = { timeoutMs: 30_000, maxOutputBytes: 1024 * 1024 };
  const scripts = globSync('systemd/**/*.sh');
  expect(scripts.length).toBeGreaterThan(3);
  const { stdout } = await runCommand('shellcheck', ['--external-sources', ...scripts], bounds);
  expect(stdout).toBe('');
});

describe('a step of a script that lasts', () => {
  // Twelve seconds that take no time; what it waits for comes with the last of them.
  const quick = `. systemd/progress.sh
    gone=0 end=$(mktemp -u)
    sleep() { gone=$((gone + 1)); [ $gone -lt 13 ] || { : >"$end"; command sleep 5; }; }`;
  const run = (script: string) =>
    runCommand('sh', ['-eu', '-c', `${quick}\n${script}`], {
      timeoutMs: 30_000,
      maxOutputBytes: 10_000,
    });

  it('says since when every few seconds, and gives the status of what it runs', async () => {
    const { stdout } = await run(`
      work() { until [ -e "$end" ]; do command sleep 0.02; done; rm "$end"; echo made; return 3; }
      tell working work || echo "status $?"`);
    expect(stdout).toBe('… working (5 s)\n… working (10 s)\nmade\nstatus 3\n');
  });

  it('ends the script where it fails, as without it', async () => {
    const work = 'work() { false; echo went on; }; tell working work; echo went on';
    expect(await run(work)).toMatchObject({ exitCode: 1, stdout: '' });
  });
});
