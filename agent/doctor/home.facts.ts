/** The agent's folder, whether an agent runs on it, and the gateway beside it. Only looked at: an agent may be at work. */
import { access, constants, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { z } from 'zod';
import { known, type Told, tell } from '#shared/check/told.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { GatewaySnapshot, GatewayStatus, gatewayPaths } from '../access/ssh/gateway-files.ts';
import { isAlive } from '../access/ssh/gateway-link.ts';
import { SFTP_PROGRAMS } from '../access/ssh/sftp-folder.ts';

export type HomeFacts = {
  home: string;
  /** Null: it is not there yet. */
  folder: Told<{ mode: number; owner: number; writable: boolean } | null>;
  /** The process that has the folder's lock; null when nobody has. */
  holder: Told<number | null>;
  gateway: Told<{
    /** Pods that it is to serve; null when it was never told of any. */
    pods: number | null;
    /** Of the process that reported last; null when none did. */
    pid: number | null;
    alive: boolean;
    /** Why pods are not ready for a login, one sentence each. */
    complaints: readonly string[];
  }>;
  busybox: { path: string; runnable: boolean };
  sftpServer: string | null;
};

const DEADLINE_MS = 3_000;
const PERMISSION_BITS = 0o777;
const LOCKS = '/proc/locks';

export async function readHomeFacts(options: {
  clock: Clock;
  home: string;
  busybox: string;
}): Promise<HomeFacts> {
  const { clock, home, busybox } = options;
  const [folder, holder, gateway, runnable, servers] = await Promise.all([
    tell(clock, DEADLINE_MS, () => readFolder(home)),
    tell(clock, DEADLINE_MS, () => lockHolder(join(home, 'agent.lock'))),
    tell(clock, DEADLINE_MS, () => readGateway(home)),
    tell(clock, DEADLINE_MS, () => allows(busybox, constants.X_OK)),
    tell(clock, DEADLINE_MS, () => runnableAmong(SFTP_PROGRAMS)),
  ]);
  const found = { path: busybox, runnable: known(runnable) === true };
  return { home, folder, holder, gateway, busybox: found, sftpServer: known(servers)?.[0] ?? null };
}

async function readFolder(home: string) {
  const found = await unlessMissing(stat(home));
  if (found === null) return null;
  const writable = await allows(home, constants.W_OK);
  return { mode: found.mode & PERMISSION_BITS, owner: found.uid, writable };
}

/** From the kernel's list of locks: to try for the lock would keep an agent from starting just then. */
async function lockHolder(path: string): Promise<number | null> {
  const found = await unlessMissing(stat(path));
  return found === null ? null : holderOf(await readFile(LOCKS, 'utf8'), found.ino);
}

/** The process with a write lock on inode `inode`. File systems may show another device than stat does. */
export function holderOf(locks: string, inode: number): number | null {
  const line = new RegExp(`^\\d+: POSIX\\s+ADVISORY\\s+WRITE (\\d+) [^ ]+:${inode} `, 'm');
  const pid = line.exec(locks)?.[1];
  return pid === undefined ? null : Number(pid);
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

/** Null when there is none. */
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
