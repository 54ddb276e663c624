/**
 * The files that connect agent and SSH gateway: the agent writes the snapshot, the gateway the status. Each is replaced
 * atomically, so that either process may restart at any time.
 */
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
  /** Null while the pod is not running; sessions are then rejected. */
  container_id: z.string().nullable(),
  /** User of all sessions. */
  user: z.string(),
  /** Content of an OpenSSH private key file. */
  host_key: z.string(),
  authorized_keys: z.array(z.string()),
  /** Variables that clients may set besides LANG, LC_* and TERM. */
  environment_names: z.array(z.string()),
  /** True if the agent's sftp-server is mounted in the pod. */
  sftp: z.boolean(),
});
export type GatewayPod = z.output<typeof GatewayPod>;

export const GatewaySnapshot = z.object({ pods: z.array(GatewayPod) });
export type GatewaySnapshot = z.output<typeof GatewaySnapshot>;

/** State of a pod as the gateway observed it. */
export const GatewayPodStatus = z.object({
  port: z.int(),
  container_id: z.string().nullable(),
  ready: z.boolean(),
  /** True if another program uses the port; the agent must then lease another port. */
  port_taken: z.boolean(),
  /** Why the pod is not ready, for the provider. */
  message: z.string(),
  since_ms: z.int(),
});
export type GatewayPodStatus = z.output<typeof GatewayPodStatus>;

/** Counts of current sessions, of sessions since the gateway's start, and of failed logins. */
const GatewayTraffic = z.object({
  sessions: z.int(),
  sessions_total: z.int(),
  login_failures_total: z.int(),
  /** Current sessions by pod id, without pods that have none. Null if an older gateway wrote the file. */
  sessions_by_pod: z.record(z.string(), z.int()).nullable().default(null),
});
export type GatewayTraffic = z.output<typeof GatewayTraffic>;

export const GatewayStatus = z.object({
  /** Process id of the gateway; the status is valid while that process is alive. */
  pid: z.int(),
  pods: z.record(z.string(), GatewayPodStatus),
  /** Null if an older gateway wrote the file. */
  traffic: GatewayTraffic.nullable().default(null),
});
export type GatewayStatus = z.output<typeof GatewayStatus>;

/** Paths of the files below an agent's home. */
export function gatewayPaths(agentHome: string) {
  const folder = join(agentHome, 'ssh');
  return {
    folder,
    snapshot: join(folder, 'gateway.json'),
    status: statusPathOf(join(folder, 'gateway.json')),
    hostKey: join(folder, 'host_key'),
    sftp: join(folder, 'sftp'),
    keys: join(folder, 'keys'),
  };
}

/** Path of the file with the gateway's status, beside the snapshot. */
export function statusPathOf(snapshotPath: string): string {
  return join(dirname(snapshotPath), 'status.json');
}

/** Writes with mode 0600 and renames atomically. Does not sync: after a power failure the file is written again. */
export function writeJsonFile(path: string, content: unknown): void {
  makeFolder(dirname(path));
  const beside = `${path}.new`;
  writeFileSync(beside, JSON.stringify(content), { mode: 0o600 });
  renameSync(beside, path);
}

/** Returns the content; null if the file is missing or does not match `schema`. */
export function readJsonFile<T>(path: string, schema: z.ZodType<T>): T | null {
  try {
    return schema.safeParse(JSON.parse(readFileSync(path, 'utf8'))).data ?? null;
  } catch {
    return null;
  }
}

/** Ports of the pods in the snapshot of an agent's home, by pod id; none without a snapshot. */
export function sshPortsIn(agentHome: string): Record<string, number> {
  const pods = readJsonFile(gatewayPaths(agentHome).snapshot, GatewaySnapshot)?.pods ?? [];
  return Object.fromEntries(pods.map(({ id, port }) => [id, port]));
}

/** Poll interval, for file systems without inotify. */
const POLL_MS = 1_000;

/** Calls `onChange` at once and after every change, one call at a time. The file may be missing. */
export function watchFile(options: {
  path: string;
  clock: Clock;
  onChange(): void | Promise<void>;
  onError(error: unknown): void;
}): { stop(): Promise<void> } {
  const { path, clock, onChange, onError } = options;
  const run = async () => onChange();
  const loop: Loop = startLoop({ clock, intervalMs: POLL_MS, run, onError });
  const watcher = watchFolder(path, () => loop.wake());
  return {
    async stop() {
      watcher?.close();
      await loop.stop();
    },
  };
}

/** Watches the folder, because a rename replaces the file. Returns null if watching is not possible. */
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
