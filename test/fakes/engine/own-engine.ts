/**
 * A second Docker engine that a test may kill and restart. The engine has separate data and separate network, process
 * and mount namespaces, which are removed with everything that the engine leaves in them. Needs root.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CommandResult, runCommand } from '#shared/runtime/run-command.ts';
import { eventually } from '../eventually.ts';

export type OwnEngine = {
  socketPath: string;
  /** Starts the engine again after `kill` or `stop`; resolves when it answers. */
  start(): Promise<void>;
  /** Sends SIGKILL; resolves when the process has ended. Without live restore its containers end too. */
  kill(): Promise<void>;
  /** Sends SIGTERM: the engine stops its containers first. */
  stop(): Promise<void>;
  /** Runs a program in the engine's namespaces, where its pods' ports and bridges are. */
  inside(file: string, ...args: string[]): Promise<CommandResult>;
  /** The engine's output, for the message of a failed test. */
  log(): string;
  /** Ends all its processes and deletes its data. */
  remove(): Promise<void>;
};

export type OwnEngineOptions = {
  /** Folder to put first in the engine's PATH: the engine finds hooks and runtimes there. */
  programs?: string;
  /** More arguments for dockerd, such as `--live-restore`. */
  daemonArguments?: readonly string[];
  /** The engine shares the network of the caller, which must not be that of the host. */
  sharesNetwork?: boolean;
};

const ANSWERS_WITHIN_MS = 30_000;
const STOPS_WITHIN_MS = 30_000;
const COMMAND_BOUNDS = { timeoutMs: 20_000, maxOutputBytes: 4 * 1024 * 1024 };
/** First process of the namespaces: it reaps orphans, and its end terminates all other processes. */
const REAPER =
  'mount -t proc proc /proc && ip link set lo up && while :; do sleep 3600 & wait; done';
const NAMESPACES = ['--mount', '--pid'] as const;

/** Starts an engine; resolves when it answers. */
export async function startOwnEngine(options: OwnEngineOptions = {}): Promise<OwnEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-dockerd-'));
  const socketPath = join(folder, 'docker.sock');
  const logFile = join(folder, 'dockerd.log');
  const namespaces = options.sharesNetwork === true ? NAMESPACES : ['--net', ...NAMESPACES];
  const holder = spawn(
    'unshare',
    [...namespaces, '--fork', '--kill-child', '--propagation', 'private', 'sh', '-c', REAPER],
    { stdio: 'ignore' },
  );
  const first = await eventually('the namespaces', () => childOf(holder));
  const enter = ['--target', String(first), ...namespaces, '--'];
  let daemon: ChildProcess | null = null;

  function inside(file: string, ...args: string[]): Promise<CommandResult> {
    return runCommand('nsenter', [...enter, file, ...args], COMMAND_BOUNDS);
  }

  /**
   * Docker before 23.0.4 does not start again if it was killed while it created a network (moby issue 45057). The engine
   * then forgets its networks, as after the remedy of agent/README.md.
   */
  async function start(): Promise<void> {
    const before = existsSync(logFile) ? log().length : 0;
    try {
      await launch();
    } catch (error) {
      if (!log().slice(before).includes('reservePools')) throw error;
      rmSync(join(folder, 'data/network/files/local-kv.db'));
      await launch();
    }
  }

  async function launch(): Promise<void> {
    const path = [options.programs, process.env['PATH'], '/usr/sbin', '/sbin'];
    const script = `exec dockerd "$@" >>${logFile} 2>&1`;
    daemon = spawn(
      'nsenter',
      [
        ...enter,
        'sh',
        '-c',
        script,
        'sh',
        ...daemonArguments(folder, socketPath),
        ...(options.daemonArguments ?? []),
      ],
      { stdio: 'ignore', env: { ...process.env, PATH: path.filter(Boolean).join(':') } },
    );
    const answers = async () => {
      if (daemon?.exitCode !== null) throw new Error(`dockerd ended: ${log()}`);
      const ping = ['-H', `unix://${socketPath}`, 'version', '--format', '{{.Server.Version}}'];
      return (await runCommand('docker', ping, COMMAND_BOUNDS)).exitCode === 0;
    };
    await eventually('an answer of the second engine', answers, ANSWERS_WITHIN_MS);
  }

  async function end(signal: 'KILL' | 'TERM'): Promise<void> {
    const ending = daemon;
    if (ending === null) return;
    const pid = readFileSync(join(folder, 'dockerd.pid'), 'utf8').trim();
    await inside('kill', `-${signal}`, pid);
    const isGone = () => ending.exitCode !== null || ending.signalCode !== null;
    await eventually('the end of the second engine', isGone, STOPS_WITHIN_MS);
    daemon = null;
  }

  function log(): string {
    return readFileSync(logFile, 'utf8');
  }

  /**
   * Removes the containers before the namespaces end, because the end of the namespaces does not remove the containers'
   * cgroups.
   */
  async function removeContainers(): Promise<void> {
    const docker = (...args: string[]) =>
      runCommand('docker', ['-H', `unix://${socketPath}`, ...args], COMMAND_BOUNDS);
    const ids = (await docker('ps', '--all', '--quiet')).stdout.split('\n').filter(Boolean);
    if (ids.length > 0) await docker('rm', '--force', ...ids);
  }

  /** For a process that exits without `remove`. */
  function abandon(): void {
    process.kill(first, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }

  async function remove(): Promise<void> {
    process.removeListener('exit', abandon);
    if (daemon !== null) await removeContainers();
    // The first process of a process namespace: when it ends, the kernel kills all others in it.
    process.kill(first, 'SIGKILL');
    await eventually(
      'the end of the namespaces',
      () => holder.exitCode !== null || holder.signalCode !== null,
    );
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }

  process.once('exit', abandon);
  try {
    await start();
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    socketPath,
    start,
    kill: () => end('KILL'),
    stop: () => end('TERM'),
    inside,
    log,
    remove,
  };
}

function daemonArguments(folder: string, socketPath: string): string[] {
  return [
    `--data-root=${join(folder, 'data')}`,
    `--exec-root=${join(folder, 'exec')}`,
    `--pidfile=${join(folder, 'dockerd.pid')}`,
    `--host=unix://${socketPath}`,
    // The engine has only its own bridges, so the host's DNS server would never answer.
    '--dns=127.0.0.1',
  ];
}

/** Returns the id of the process that `unshare --fork` has created. */
function childOf({ pid }: ChildProcess): number | false {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return children === '' ? false : Number(children.split(' ')[0]);
}
