/** Ctrl-C at every phase of `npm start` and of its set-up: nothing that it started remains. */
import { type ChildProcess, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { lockExclusively } from '#shared/runtime/sqlite.ts';
import { createDockerodeEngine } from '../../agent/containers/engine/dockerode-engine.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
import type { DemoFile } from '../../validator/embedded/demo-file.ts';
import { eventually } from '../fakes/eventually.ts';
import { api } from './api.ts';
import { freePortFlags, removeHome, temporaryHome } from './marketplace-process.ts';

const ROOT = join(import.meta.dirname, '../..');
const MAIN = join(ROOT, 'validator/embedded/main.ts');
const WITHIN_MS = 240_000;
/** Pause before the second signal in milliseconds: an earlier signal counts as a repetition of the first. */
const SECOND_SIGNAL_MS = 1_100;

const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });

type Run = { child: ChildProcess; output(): string; ended: Promise<number | null> };

/** Starts a program in a separate process group, as a shell does. */
function start(program: string, args: readonly string[], cwd = ROOT, env = process.env): Run {
  const child = spawn(program, args, {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString('utf8');
    });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  return { child, output: () => output, ended };
}

/** Sends the signals of Ctrl-C: the terminal signals the group, and npm forwards the signal to its child. */
function interrupt({ child }: Run): void {
  process.kill(-(child.pid ?? 0), 'SIGINT');
  child.kill('SIGINT');
}

/** Command lines of live processes that mention the text in their arguments or environment. */
function processesOf(text: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        const all = `${command}${readFileSync(`/proc/${pid}/environ`, 'utf8')}`;
        return all.includes(text) && command !== '' ? [command.replaceAll('\0', ' ')] : [];
      } catch {
        return [];
      }
    });
}

/** Objects of the executors of a home; the ids are the names of the agents' folders. */
async function objectsOf(home: string): Promise<string[]> {
  const folder = join(home, 'agents');
  const ids = existsSync(folder) ? readdirSync(folder) : [];
  const found = ids.map(async (id) => {
    const labels = { [LABELS.executor]: id };
    const containers = await engine.listContainers(labels);
    const networks = await engine.listNetworks(labels);
    return [...containers, ...networks].map((each) => each.id);
  });
  return (await Promise.all(found)).flat();
}

/** Returns false while a process holds the lock of the home. */
function isUnlocked(home: string): boolean {
  const path = join(home, 'marketplace.lock');
  if (!existsSync(path)) return true;
  try {
    lockExclusively(path).close();
    return true;
  } catch {
    return false;
  }
}

describe('npm start', () => {
  const home = temporaryHome();
  afterAll(() => removeHome(home));

  async function startIn(phase: string, ...flags: string[]): Promise<Run> {
    const args = [MAIN, '--home', home, ...(await freePortFlags()), ...flags];
    const run = start(process.execPath, args);
    await untilPrinted(run, phase);
    return run;
  }

  async function untilPrinted(run: Run, text: string): Promise<void> {
    const hasEnded = () => run.child.exitCode !== null || run.child.signalCode !== null;
    await eventually(
      `output "${text}"`,
      () => {
        if (run.output().includes(text)) return true;
        if (hasEnded()) throw new Error(`ended early:\n${run.output()}`);
        return false;
      },
      WITHIN_MS,
    );
  }

  async function expectNothingLeft(run: Run): Promise<void> {
    await run.ended;
    expect(processesOf(home)).toEqual([]);
    expect(await objectsOf(home)).toEqual([]);
    expect(isUnlocked(home)).toBe(true);
    expect(run.output()).not.toMatch(/podwright: |^\s+at /m);
  }

  /** Rents a pod and resolves when the engine has its container. */
  async function rentPod(): Promise<void> {
    const demo: DemoFile = JSON.parse(readFileSync(join(home, 'demo.json'), 'utf8'));
    const [node, template] = [demo.executors[0]?.id, demo.templates[0]?.id];
    const body = { pod_name: 'interrupted', template_id: template };
    const { status } = await api(demo, 'POST', `/executors/${node}/rent`, body);
    expect(status).toBe(200);
    await eventually('a container', async () => (await objectsOf(home)).length > 0, WITHIN_MS);
  }

  /** Progress lines at which the start is interrupted; an empty text interrupts at once. */
  it.each([
    '',
    'starting the central API and the validator',
    'starting 2 agents',
    'waiting for the validator to verify the executors',
    'Podwright is ready',
  ])(
    'leaves nothing after Ctrl-C at "%s"',
    async (phase) => {
      const run = await startIn(phase);
      interrupt(run);
      await expectNothingLeft(run);
      if (phase !== '') expect(run.output()).toContain('Stopping.');
    },
    WITHIN_MS,
  );

  it(
    'leaves nothing after Ctrl-C with a rented pod, or during --fresh, which removes the pod that was kept',
    async () => {
      const kept = await startIn('Podwright is ready', '--keep-pods');
      await rentPod();
      interrupt(kept);
      await kept.ended;
      expect((await objectsOf(home)).length).toBeGreaterThan(0);
      const fresh = await startIn('removing the pods of executor', '--fresh');
      interrupt(fresh);
      await expectNothingLeft(fresh);
      const run = await startIn('Podwright is ready');
      await rentPod();
      interrupt(run);
      await expectNothingLeft(run);
    },
    4 * WITHIN_MS,
  );

  it(
    'ends at once after a second Ctrl-C, without processes; the next start manages the pod and removes it',
    async () => {
      const run = await startIn('Podwright is ready');
      await rentPod();
      interrupt(run);
      await untilPrinted(run, 'Stopping.');
      await systemClock.sleep(SECOND_SIGNAL_MS);
      // The process may already have ended in order.
      if (run.child.exitCode === null) interrupt(run);
      expect([0, 130]).toContain(await run.ended);
      await eventually('no process', () => processesOf(home).length === 0, WITHIN_MS);
      expect(isUnlocked(home)).toBe(true);
      const next = await startIn('Podwright is ready');
      interrupt(next);
      await expectNothingLeft(next);
    },
    3 * WITHIN_MS,
  );
});

describe('a set-up', () => {
  it('ends with all its processes after Ctrl-C, and prints "interrupted" last', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'podwright-setup-'));
    try {
      mkdirSync(join(folder, 'systemd'));
      cpSync(join(ROOT, 'systemd/run.sh'), join(folder, 'systemd/run.sh'));
      cpSync(join(ROOT, 'systemd/progress.sh'), join(folder, 'systemd/progress.sh'));
      cpSync(join(ROOT, 'systemd/setup.sh'), join(folder, 'systemd/setup.sh'));
      cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
      cpSync(join(ROOT, 'package-lock.json'), join(folder, 'package-lock.json'));
      // A registry that never responds: the installation of the packages lasts until it is interrupted.
      const env = { ...process.env, npm_config_registry: 'http://192.0.2.1', TMPDIR: folder };
      const command = ['systemd/run.sh', '--setup', 'validator/embedded/main.ts'];
      const run = start('sh', command, folder, env);
      await eventually('npm', () => run.output().includes('Installing the npm packages'), 20_000);
      interrupt(run);
      expect(await run.ended).toBe(130);
      expect(run.output().trim().split('\n').at(-1)).toBe('interrupted');
      await eventually('no process', () => processesOf(folder).length === 0, 10_000);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }, 60_000);
});
