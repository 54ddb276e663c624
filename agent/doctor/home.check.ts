/**
 * Checks of the agent's home, its process, the SSH gateway and the programs that they need. Only reads: the agent may
 * run.
 */
import { existsSync } from 'node:fs';
import { access, constants, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { z } from 'zod';
import { fail, type Outcome, ok, unread, warn } from '#shared/check/check.ts';
import type { DoctorCheck } from '#shared/check/doctor.ts';
import { type Observed, observe, valueOrNull } from '#shared/check/observe.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { findDamage } from '#shared/runtime/sqlite.ts';
import { GatewaySnapshot, GatewayStatus, gatewayPaths } from '../access/ssh/gateway-files.ts';
import { isAlive } from '../access/ssh/gateway-link.ts';
import { SFTP_PROGRAMS } from '../access/ssh/sftp-folder.ts';
import { STORE_FILE } from '../database/database.ts';
import { otherMachineText, readMachineIds } from '../host/machine.ts';

export type HomeFacts = {
  home: string;
  /** Null until the agent has created it. */
  folder: Observed<{ mode: number; owner: number; writable: boolean } | null>;
  /** Id of the process that holds the home's lock; null if none does. */
  holder: Observed<number | null>;
  /** Describes that another machine last used the home; null otherwise. */
  moved: string | null;
  /** First finding of damage in the store; null if it is undamaged or does not exist yet. */
  store: Observed<string | null>;
  gateway: Observed<{
    /** Number of pods in its snapshot; null if there is no snapshot. */
    pods: number | null;
    /** Id of the process that wrote the status; null without one. */
    pid: number | null;
    alive: boolean;
    /** Pods that accept no login, one sentence each. */
    complaints: readonly string[];
  }>;
  busybox: { path: string; runnable: boolean };
  sftpServer: string | null;
};

/** `answers`: an agent with this executor id responds at its port. */
type Facts = HomeFacts & { answers: boolean };

const DEADLINE_MS = 3_000;
const STORE_MS = 20_000;
const PERMISSION_BITS = 0o777;
const OTHERS = 0o077;
const LOCKS = '/proc/locks';
const AS_AGENT = 'run the doctor as the agent’s user';
const MAX_COMPLAINTS = 3;

export async function readHomeFacts(options: {
  clock: Clock;
  home: string;
  busybox: string;
}): Promise<HomeFacts> {
  const { clock, home, busybox } = options;
  const [folder, holder, store, gateway, runnable, servers] = await Promise.all([
    observe(clock, DEADLINE_MS, () => readFolder(home)),
    observe(clock, DEADLINE_MS, () => lockHolder(join(home, 'agent.lock'))),
    observe(clock, STORE_MS, async () => readStore(join(home, STORE_FILE))),
    observe(clock, DEADLINE_MS, () => readGateway(home)),
    observe(clock, DEADLINE_MS, () => allows(busybox, constants.X_OK)),
    observe(clock, DEADLINE_MS, () => runnableAmong(SFTP_PROGRAMS)),
  ]);
  return {
    home,
    folder,
    holder,
    moved: otherMachineText(home, readMachineIds()),
    store,
    gateway,
    busybox: { path: busybox, runnable: valueOrNull(runnable) === true },
    sftpServer: valueOrNull(servers)?.[0] ?? null,
  };
}

async function readFolder(home: string) {
  const found = await unlessMissing(stat(home));
  if (found === null) return null;
  const writable = await allows(home, constants.W_OK);
  return { mode: found.mode & PERMISSION_BITS, owner: found.uid, writable };
}

/** Reads the kernel's list of locks: taking the lock to test it could make the start of an agent fail. */
async function lockHolder(path: string): Promise<number | null> {
  const found = await unlessMissing(stat(path));
  return found === null ? null : holderOf(await readFile(LOCKS, 'utf8'), found.ino);
}

/** Returns the process with a write lock on the inode. The device is not compared: it may differ from that of stat. */
export function holderOf(locks: string, inode: number): number | null {
  const line = new RegExp(`^\\d+: POSIX\\s+ADVISORY\\s+WRITE (\\d+) [^ ]+:${inode} `, 'm');
  const pid = line.exec(locks)?.[1];
  return pid === undefined ? null : Number(pid);
}

function readStore(path: string): string | null {
  return existsSync(path) ? findDamage(path) : null;
}

async function readGateway(home: string) {
  const paths = gatewayPaths(home);
  const [snapshot, status] = await Promise.all([
    readJson(paths.snapshot, GatewaySnapshot),
    readJson(paths.status, GatewayStatus),
  ]);
  const pods = Object.values(status?.pods ?? {});
  return {
    pods: snapshot?.pods.length ?? null,
    pid: status?.pid ?? null,
    alive: status !== null && isAlive(status.pid),
    complaints: pods
      .filter(({ ready, container_id }) => !ready && container_id !== null)
      .map(({ port, message }) => `port ${port}: ${message}`),
  };
}

/** Null if there is no file. */
async function readJson<T>(path: string, schema: z.ZodType<T>): Promise<T | null> {
  const text = await unlessMissing(readFile(path, 'utf8'));
  return text === null ? null : schema.parse(JSON.parse(text));
}

async function unlessMissing<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

async function runnableAmong(paths: readonly string[]): Promise<string[]> {
  const runnable = await Promise.all(paths.map((path) => allows(path, constants.X_OK)));
  return paths.filter((_, index) => runnable[index]);
}

function allows(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}

export const HOME_CHECKS: readonly DoctorCheck<Facts>[] = [
  {
    id: 'state-folder',
    detects: 'a home that other users can read or the agent cannot write',
    required: 'AGENT_HOME is writable and has mode 0700',
    judge: folder,
  },
  {
    id: 'store',
    detects: 'a damaged store',
    required: 'the store of the agent is undamaged',
    judge: store,
  },
  {
    id: 'agent',
    detects: 'an agent that does not run or does not answer',
    required: 'the process that holds AGENT_HOME answers at AGENT_PORT',
    judge: agent,
  },
  {
    id: 'ssh-gateway',
    detects: 'pods that accept no login',
    required: 'the SSH gateway runs, and every pod accepts logins',
    judge: gateway,
  },
  {
    id: 'busybox',
    detects: 'a host without the program for probe containers',
    required: 'AGENT_BUSYBOX is executable',
    judge({ busybox: { path, runnable } }) {
      if (runnable) return ok(path);
      const measured = `${path} is missing: the validator’s probe cannot start`;
      return fail(measured, 'apt install busybox-static; or set AGENT_BUSYBOX');
    },
  },
  {
    id: 'sftp-server',
    detects: 'pods without SFTP and scp',
    required: 'OpenSSH’s sftp-server is installed',
    judge({ sftpServer: path }) {
      if (path !== null) return ok(path);
      return warn(
        'sftp-server is missing: pods have no SFTP and scp',
        'apt install openssh-sftp-server',
      );
    },
  },
];

function folder({ home, folder: observed }: Facts): Outcome {
  if ('problem' in observed) {
    return unread(observed, `${home} cannot be read: ${observed.problem}`, AS_AGENT);
  }
  if (observed.value === null) return ok(`${home} does not exist yet: the agent creates it`);
  const { mode, writable } = observed.value;
  const measured = `${home}, mode 0${mode.toString(8)}`;
  if ((mode & OTHERS) !== 0) {
    return warn(`${measured}: other users can read pods’ host keys`, `chmod 0700 ${home}`);
  }
  if (writable) return ok(measured);
  return fail(`${measured}: not writable by this user`, `chown -R root ${home}; or ${AS_AGENT}`);
}

function store({ home, store: observed }: Facts): Outcome {
  const path = join(home, STORE_FILE);
  if ('problem' in observed)
    return unread(observed, `${path} cannot be read: ${observed.problem}`, AS_AGENT);
  if (observed.value === null) return ok('undamaged');
  return fail(
    `${path} is damaged: ${observed.value}`,
    'restart the agent: it moves the store aside and builds a new one from the containers',
  );
}

function agent({ holder, moved, home, answers }: Facts): Outcome {
  if ('problem' in holder) {
    if (answers) return ok('runs');
    return unread(holder, `the lock cannot be read: ${holder.problem}`, AS_AGENT);
  }
  if (holder.value !== null && answers) return ok(`runs as process ${holder.value}`);
  if (holder.value !== null) {
    const remedy = 'read the agent’s log; restart the agent: pods keep running';
    return fail(`process ${holder.value} holds ${home} and does not answer`, remedy);
  }
  if (moved !== null) return fail(moved, 'leave one machine with this home');
  if (answers) {
    return warn(
      `the agent answers, but its home is not ${home}`,
      'run the doctor with the agent’s AGENT_HOME',
    );
  }
  return warn('the agent does not run', 'start it with npm run agent and the same variables');
}

function gateway({ gateway: observed, answers }: Facts): Outcome {
  if ('problem' in observed) {
    return unread(observed, `the gateway’s files cannot be read: ${observed.problem}`, AS_AGENT);
  }
  const { pods, pid, alive, complaints } = observed.value;
  if (!alive) {
    const ended = pid === null ? 'the gateway never reported' : `process ${pid} has ended`;
    const problem = answers || (pods ?? 0) > 0 ? fail : warn;
    return problem(
      `pods accept no login: ${ended}`,
      'npm run ssh-gateway, with SSH_SNAPSHOT=<AGENT_HOME>/ssh/gateway.json',
    );
  }
  if (complaints.length === 0) return ok(`process ${pid} serves ${pods ?? 0} pods`);
  const listed = complaints.slice(0, MAX_COMPLAINTS).join('; ');
  return warn(`${complaints.length} pods accept no login: ${listed}`, 'read the gateway’s log');
}
