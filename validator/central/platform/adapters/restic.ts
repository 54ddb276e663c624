/** Stores restic repositories at a location that the operator configures, and removes snapshots from repositories. */
import { mkdir, rename, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { z } from 'zod';
import { repositoryVariables } from '#shared/api/agent/operations.ts';
import { type Clock, parseIsoTime } from '#shared/runtime/clock.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import type { BackupStorage, PruneRepository } from '../ports.ts';

export type ResticLocationOptions = {
  /** Location such as a path, `sftp:…`, `s3:…` or `rest:…`. The repository's id is appended to it. */
  prefix: string;
  /** Environment of restic's back end, with its credentials. Every node that runs a backup receives it. */
  environment: Record<string, string>;
};

/** Folder, next to the repositories, for repositories that are being deleted. */
const REMOVED = 'removed';
const ID = /^[0-9a-f-]{36}$/;

/**
 * Creates the storage in an external back end. The back end has one set of credentials, so `append` and `full` rights
 * are the same, and the sizes of repositories are unknown. `remove` works for local paths. For other locations `remove`
 * rejects, and the operator must remove the repository.
 */
export function createResticLocation({
  prefix,
  environment,
}: ResticLocationOptions): BackupStorage {
  const base = prefix.replace(/\/+$/, '');
  return {
    place: async ({ id }) => ({ location: `${base}/${id}`, environment: { ...environment } }),
    bytesOf: async () => null,
    async remove(id) {
      if (!isAbsolute(base) || !ID.test(id)) {
        throw new Error(`the operator must remove the backups in ${base}/${id}`);
      }
      await mkdir(join(base, REMOVED), { recursive: true, mode: 0o700 });
      const away = join(base, REMOVED, id);
      // Removes a folder that an interrupted attempt has left.
      await rm(away, { recursive: true, force: true });
      await rename(join(base, id), away).catch((error: unknown) => {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
      });
      await rm(away, { recursive: true, force: true });
    },
  };
}

const TIMEOUT_MS = 600_000;
const MAX_OUTPUT_BYTES = 8 * 1024 * 1024;
/** Maximum number of ids in one command line. The next prune removes the remaining snapshots. */
const MAX_IDS = 10_000;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** Maximum number of characters of restic's output in an error. */
const MAX_SHOWN_CHARS = 300;

const Snapshots = z.array(z.object({ id: z.string().regex(/^[0-9a-f]{64}$/) })).nullable();

/** Age from which on a lock is stale for restic. A running process refreshes its lock every five minutes. */
const STALE_MS = 30 * 60_000;
/** restic omits the id of root. */
const Lock = z.object({ time: z.string(), hostname: z.string(), uid: z.int().default(0) });
type Lock = z.output<typeof Lock>;

/** The user and host of this process. */
const SELF = { uid: process.getuid?.() ?? 0, hostname: hostname() };

/**
 * Runs restic as a bounded child process. Secrets are passed in its environment only. Rejects while another process uses
 * the repository, or was killed less than half an hour ago.
 */
export function createResticPrune(
  run: RunCommand,
  { clock, self = SELF }: { clock: Clock; self?: typeof SELF },
): PruneRepository {
  /**
   * `restic unlock` removes the lock of a running process of this host that it may not signal, such as an agent of root,
   * or that is in another container. A prune would then remove data that the running backup refers to.
   */
  function mayRun({ time, hostname, uid }: Lock): boolean {
    const isOwn = hostname === self.hostname && uid === self.uid;
    return !isOwn && clock.now() - (parseIsoTime(time) ?? clock.now()) < STALE_MS;
  }

  return async ({ password, ...address }, keepSnapshots) => {
    const secrets = { ...repositoryVariables(address), RESTIC_PASSWORD: password };
    const env = { ...secrets, PATH, GOMAXPROCS: '1' };

    async function restic(...args: string[]): Promise<string> {
      const options = { timeoutMs: TIMEOUT_MS, maxOutputBytes: MAX_OUTPUT_BYTES, env };
      const result = await run('restic', ['--no-cache', '--quiet', ...args], options);
      if (result.exitCode === 0) return result.stdout;
      const cause = result.ended ?? result.stderr.trim().slice(0, MAX_SHOWN_CHARS);
      throw new Error(`restic ${args[0]}: ${cause}`);
    }

    async function lockOf(id: string): Promise<Lock> {
      return Lock.parse(JSON.parse(await restic('cat', 'lock', id, '--no-lock')));
    }

    try {
      const ids = (await restic('list', 'locks', '--no-lock')).split('\n').filter(Boolean);
      for (const id of ids) {
        if (mayRun(await lockOf(id))) throw new Error('another process uses the repository');
      }
      await restic('unlock');
    } catch (error) {
      if (isAbsent(error)) return false;
      throw error;
    }
    const kept = new Set(keepSnapshots);
    const present = Snapshots.parse(JSON.parse(await restic('snapshots', '--json'))) ?? [];
    if (kept.size > 0 && !present.some(({ id }) => kept.has(id))) {
      // No snapshot is removed, because the other snapshots may be the only backups.
      throw new Error('the repository contains none of the snapshots to keep');
    }
    const waste = present.map(({ id }) => id).filter((id) => !kept.has(id));
    if (waste.length > 0) await restic('forget', '--prune', ...waste.slice(0, MAX_IDS));
    return true;
  };
}

function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
