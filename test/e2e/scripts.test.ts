import { globSync, mkdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCommand } from '#shared/runtime/run-command.ts';
import { mustRun } from '../fakes/agents/real-host.ts';
import { mountCutDisk } from '../fakes/faults/cut-disk.ts';

it('all shell scripts pass shellcheck', async () => {
  const bounds = { timeoutMs: 30_000, maxOutputBytes: 1024 * 1024 };
  const scripts = globSync('systemd/**/*.sh');
  expect(scripts.length).toBeGreaterThan(3);
  const { stdout } = await runCommand('shellcheck', ['--external-sources', ...scripts], bounds);
  expect(stdout).toBe('');
});

it.each([
  ['--keep-data', '--purge'],
  ['--purge', '--keep-data'],
])('uninstall.sh removes nothing with %s and %s', async (...flags) => {
  const bounds = { timeoutMs: 30_000, maxOutputBytes: 10_000 };
  const run = runCommand('sh', ['systemd/uninstall.sh', '--dry-run', ...flags], bounds);
  expect(await run).toMatchObject({
    exitCode: 2,
    stdout: '',
    stderr: '--keep-data and --purge contradict each other: use one of them.\n',
  });
});

it.each([
  [['--component', 'agnet'], "--component must be one of agent validator central, not 'agnet'."],
  [['--probation', 'soon'], "--probation must be a number of seconds, not 'soon'."],
  [['--porbation', '5'], "Unknown option '--porbation'."],
])('install.sh installs nothing with %j, and prints the reason', async (words, why) => {
  const bounds = { timeoutMs: 30_000, maxOutputBytes: 10_000 };
  const { exitCode, stderr } = await runCommand('sh', ['systemd/install.sh', ...words], bounds);
  expect(exitCode).toBe(2);
  expect(stderr.split('\n')[0]).toBe(why);
});

it.each([
  [['--component', 'agnet'], "--component must be one of agent validator central, not 'agnet'."],
  [['--keep-data', '--pods'], "--pods must be leave or remove, not ''."],
  [['--purg'], "Unknown option '--purg'."],
  [['--dry-run'], 'Choose what happens to the data: --keep-data or --purge.'],
])('uninstall.sh removes nothing with %j, and prints the reason', async (words, why) => {
  const bounds = { timeoutMs: 30_000, maxOutputBytes: 10_000 };
  const { exitCode, stderr } = await runCommand('sh', ['systemd/uninstall.sh', ...words], bounds);
  expect(exitCode).toBe(2);
  expect(stderr.split('\n')[0]).toBe(why);
});

it.each([
  ['exit 6', 'agent.env is not complete: because'],
  ['exit 9', 'agent.env (exit status 9): because'],
])('install.sh distinguishes rejected variables from other failures: %s', async (end, words) => {
  const bounds = { timeoutMs: 30_000, maxOutputBytes: 10_000 };
  const script = `. systemd/installation.sh; . systemd/install/configuration.sh
    components=agent; systemctl() { return 1; }; accepts() { echo because; ${end}; }
    check_configurations 1`;
  const { stdout } = await runCommand('sh', ['-euc', script], bounds);
  expect(stdout).toContain(words);
});

it('after a power cut during a switch, the old or the new release is complete, and a rollback is possible', async () => {
  const disk = mountCutDisk(16);
  try {
    for (const name of ['one', 'two']) {
      mkdirSync(join(disk.folder, 'podwright/releases', name), { recursive: true });
    }
    const parts = `mount --bind ${disk.folder} /opt; source_tree=.
      . systemd/installation.sh; . systemd/install/releases.sh`;
    const run = (script: string) =>
      mustRun('unshare', '--mount', 'sh', '-euc', `${parts}; ${script}`);
    await run('link releases/one $CURRENT_LINK; switch_to two');
    expect(
      disk.afterCut((folder) => [
        readlinkSync(join(folder, 'podwright/current')),
        readFileSync(join(folder, 'podwright/trial'), 'utf8'),
      ]),
    ).toEqual(['releases/two', 'releases/one\n']);
    await run('prove');
    expect(disk.afterCut((folder) => readlinkSync(join(folder, 'podwright/previous')))).toBe(
      'releases/one',
    );
    expect(
      disk.afterCut((folder) => globSync('trial*', { cwd: join(folder, 'podwright') })),
    ).toEqual([]);
  } finally {
    disk.close();
  }
});

describe('a long step of a script', () => {
  // Simulates twelve seconds without waiting; the expected line is printed in the last one.
  const quick = `
    gone=0 end=$(mktemp -u)
    sleep() { gone=$((gone + 1)); [ $gone -lt 13 ] || { : >"$end"; command sleep 5; }; }`;
  const run = (script: string) =>
    runCommand('sh', ['-eu', '-c', `. systemd/progress.sh\n${script}`], {
      timeoutMs: 30_000,
      maxOutputBytes: 10_000,
    });

  it('prints its duration every few seconds, and returns the status of its command', async () => {
    const { stdout } = await run(`${quick}
      work() { until [ -e "$end" ]; do command sleep 0.02; done; rm "$end"; echo made; return 3; }
      with_progress working work || echo "status $?"`);
    expect(stdout).toBe('… working (5 s)\n… working (10 s)\nmade\nstatus 3\n');
  });

  it('ends the script when its command fails', async () => {
    const work = 'work() { false; echo went on; }; with_progress working work; echo went on';
    expect(await run(work)).toMatchObject({ exitCode: 1, stdout: '' });
  });
});
