/** What agent and SSH gateway tell each other, by one file each: whole or not at all, so that either may restart. */
import { type FSWatcher, readFileSync, renameSync, watch, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import { makeFolder } from '#shared/runtime/files.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';

/** One pod as the gateway serves it. */
export const GatewayPod = z.object({
  id: z.string(),
  /** Host port to listen on. */
  port: z.int(),
  /** Null while it does not run: who logs in is told so. */
  container_id: z.string().nullable(),
  /** Everybody who logs in is this user. */
  user: z.string(),
  /** Content of an OpenSSH private key file. */
  host_key: z.string(),
  authorized_keys: z.array(z.string()),
  /** Variables that clients may set beside LANG, LC_* and TERM. */
  environment_names: z.array(z.string()),
  /** The pod has our sftp-server mounted. */
  sftp: z.boolean(),
});
export type GatewayPod = z.output<typeof GatewayPod>;

export const GatewaySnapshot = z.object({ pods: z.array(GatewayPod) });
export type GatewaySnapshot = z.output<typeof GatewaySnapshot>;

/** How the gateway found a pod. */
export const GatewayPodStatus = z.object({
  port: z.int(),
  container_id: z.string().nullable(),
  ready: z.boolean(),
  /** Something else has the port: another one has to be leased. */
  port_taken: z.boolean(),
  /** Why it is not ready, in words. */
  message: z.string(),
  since_ms: z.int(),
});
export type GatewayPodStatus = z.output<typeof GatewayPodStatus>;

/** Sessions now and since the gateway's start, and tries that proved no key. */
const GatewayTraffic = z.object({
  sessions: z.int(),
  sessions_total: z.int(),
  login_failures_total: z.int(),
  /** Of pods that have any; null: a gateway of an older version, which does not tell. */
  sessions_by_pod: z.record(z.string(), z.int()).nullable().default(null),
});
export type GatewayTraffic = z.output<typeof GatewayTraffic>;

export const GatewayStatus = z.object({
  /** Of the gateway: its words count while it lives. */
  pid: z.int(),
  pods: z.record(z.string(), GatewayPodStatus),
  /** Null: a gateway of an older version, which does not tell. */
  traffic: GatewayTraffic.nullable().default(null),
});
export type GatewayStatus = z.output<typeof GatewayStatus>;

/** Where they lie below an agent's home. */
export function gatewayPaths(agentHome: string) {
  const folder = join(agentHome, 'ssh');
  return {
    folder,
    snapshot: join(folder, 'gateway.json'),
    /** The gateway puts it beside the snapshot that it reads. */
    status: statusPathOf(join(folder, 'gateway.json')),
    sftp: join(folder, 'sftp'),
    keys: join(folder, 'keys'),
  };
}

/** The status file that belongs to a snapshot. */
export function statusPathOf(snapshotPath: string): string {
  return join(dirname(snapshotPath), 'status.json');
}

/** Mode 0600, by atomic rename. After a power cut the writer writes it anew, so nothing is synced. */
export function writeWhole(path: string, content: unknown): void {
  makeFolder(dirname(path));
  const beside = `${path}.new`;
  writeFileSync(beside, JSON.stringify(content), { mode: 0o600 });
  renameSync(beside, path);
}

/** Null when there is none, or none that can be read as `schema`. */
export function readWhole<T>(path: string, schema: z.ZodType<T>): T | null {
  try {
    return schema.safeParse(JSON.parse(readFileSync(path, 'utf8'))).data ?? null;
  } catch {
    return null;
  }
}

// MERGED agent/access/ssh/gateway-files.ts: Tells when a file may have changed: at once where the system says so, within a second anyway.
/** The longest that a change goes unseen where watching does not work. */
const POLL_MS = 1_000;

/** Calls `look` at once and after every change, one at a time; the file may come and go. */
export function watchFile(options: {
  path: string;
  clock: Clock;
  look(): void | Promise<void>;
  onError(error: unknown): void;
}): { stop(): Promise<void> } {
  const { path, clock, look, onError } = options;
  const run = async () => look();
  const loop: Loop = startLoop({ clock, intervalMs: POLL_MS, run, onError });
  const watcher = watchFolder(path, () => loop.wake());
  return {
    async stop() {
      watcher?.close();
      await loop.stop();
    },
  };
}

/** The folder is watched, since a renamed file is another file. Null where it cannot be. */
function watchFolder(path: string, onChange: () => void): FSWatcher | null {
  try {
    makeFolder(dirname(path));
    const watcher = watch(dirname(path), { persistent: false }, (_, name) => {
      if (name === null || name === basename(path)) onChange();
    });
    watcher.on('error', () => undefined);
    return watcher;
  } catch {
    return null;
  }
}
