/** Requests of renters under chaos, many at a time, with a record of what the central API has promised. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
import { eventually } from '../fakes/eventually.ts';
import { fingerprintOf } from '../fakes/mixed-tree.ts';
import type { Answer, ChaosAccount } from './chaos-client.ts';
import { ledgerCommand } from './chaos-ledger.ts';
import type { OperationKind, PlannedOperation } from './chaos-plan.ts';
import type { ChaosWorld } from './chaos-world.ts';

const MIB = 1024 * 1024;
/** Folder of each pod that backups cover, below its volume. */
const DATA = 'data';
const RESTORED = 'restored';
const VOLUME_PATH = '/workspace';
/** Time limit of a backup or restore: several times the storage's delay for a node that does not answer. */
const ENDS_WITHIN_MS = 600_000;
const POLL_MS = 1_000;
const OPEN = ['PENDING', 'IN_PROGRESS'];
const PAID_WITHIN_MS = 240_000;

export type ChaosPod = {
  id: string;
  account: ChaosAccount;
  /** Time of the removal request, monotonic; null while the renter keeps the pod. */
  removedMs: number | null;
  /** True while a backup or restore of this run uses the pod's files. */
  isBusy: boolean;
};
/** A backup that the central API reports as complete, with the content of its folder. */
export type ChaosBackup = { id: string; account: ChaosAccount; tree: readonly string[] };
export type ChaosRecords = {
  pods: ChaosPod[];
  backups: ChaosBackup[];
  transfers: { from: ChaosAccount; to: ChaosAccount; uusd: number }[];
  payments: { account: ChaosAccount; uusd: number }[];
  counts: Record<string, number>;
  /** Violations that were found during the run. */
  losses: string[];
};

export type ChaosRenters = ReturnType<typeof createRenters>;

export function createRenters(world: ChaosWorld, note: (line: string) => void) {
  const records: ChaosRecords = {
    pods: [],
    backups: [],
    transfers: [],
    payments: [],
    counts: {},
    losses: [],
  };
  const { pods, backups } = records;
  const count = (name: string) => {
    records.counts[name] = (records.counts[name] ?? 0) + 1;
  };
  const livePods = () => pods.filter(({ removedMs }) => removedMs === null);
  const idlePods = () => livePods().filter(({ isBusy }) => !isBusy);

  /** Counts the answer; returns true if the request was accepted. */
  function isAccepted(kind: string, { status, code, body }: Answer): boolean {
    if (status >= 500) records.losses.push(`${kind}: ${status} ${JSON.stringify(body)}`);
    count(status < 300 ? kind : `${kind} refused (${code || status})`);
    return status < 300;
  }

  async function rent(account: ChaosAccount, nodeId: string): Promise<ChaosPod | null> {
    const body = { pod_name: 'chaos', template_id: account.templateId };
    const answer = await account.call('POST', `/executors/${nodeId}/rent`, body);
    if (!isAccepted('rent', answer)) return null;
    const pod: ChaosPod = {
      id: String(answer.body['id']),
      account,
      removedMs: null,
      isBusy: false,
    };
    pods.push(pod);
    const schedule = { backup_frequency_hours: 1, retention_days: 30 };
    const backup_path = join(VOLUME_PATH, DATA);
    await account.call('POST', '/backup-configs', { pod_id: pod.id, ...schedule, backup_path });
    return pod;
  }

  async function remove(pod: ChaosPod): Promise<void> {
    pod.removedMs = systemClock.monotonicMs();
    isAccepted('remove', await pod.account.call('DELETE', `/pods/${pod.id}`));
  }

  async function reboot({ id, account }: ChaosPod): Promise<void> {
    isAccepted('reboot', await account.call('POST', `/pods/${id}/reboot`, {}));
  }

  /** Folder of the pod's volume on the engine's host; null if the pod has none, or the engine is down. */
  async function volumeOf({ id }: ChaosPod): Promise<string | null> {
    const volumes = await world.engine.listVolumes({ [LABELS.pod]: id }).catch(() => []);
    return volumes[0]?.hostPath ?? null;
  }

  /** Waits for the end of a backup or restore and returns its state. */
  async function endOf(read: () => Promise<Answer>, find: (answer: Answer) => unknown) {
    const state = await eventually(
      'the end of a backup or restore',
      async () => {
        await systemClock.sleep(POLL_MS);
        const found = find(await read());
        return !OPEN.includes(String(found)) && String(found);
      },
      ENDS_WITHIN_MS,
    );
    return state;
  }

  async function backup(pod: ChaosPod, mib: number): Promise<void> {
    const { id, account } = pod;
    const volume = await volumeOf(pod);
    if (volume === null) return count('backup without a volume yet');
    const folder = join(volume, DATA);
    writeData(folder, mib);
    const tree = fingerprintOf(folder);
    const answer = await account.call('POST', `/pods/${id}/backup`);
    if (!isAccepted('backup', answer)) return;
    const backupId = String(answer.body['backup_log_id']);
    const read = () => account.call('GET', `/backup-logs/${backupId}`);
    const state = await endOf(read, ({ body }) => body['status']);
    count(`backup ${state}`);
    if (state === 'COMPLETED') backups.push({ id: backupId, account, tree });
  }

  /** Restores a backup and compares all files. Returns the final state; null if the request was refused. */
  async function restore(pod: ChaosPod, { id: backup_id, tree }: ChaosBackup) {
    const { id, account } = pod;
    const body = { backup_id, restore_path: join(VOLUME_PATH, RESTORED), mode: 'replace' };
    const answer = await account.call('POST', `/pods/${id}/restore`, body);
    if (!isAccepted('restore', answer)) return null;
    const { restore_log_id: restoreId } = answer.body;
    const read = () => account.call('GET', `/pods/${id}/restore-logs?limit=100`);
    const state = await endOf(read, ({ body: { items = [] } }) => {
      const all = items as { id: string; status: string }[];
      return all.find((each) => each.id === restoreId)?.status ?? 'PENDING';
    });
    count(`restore ${state}`);
    const volume = state === 'COMPLETED' ? await volumeOf(pod) : null;
    if (volume !== null) compare(join(volume, RESTORED), tree, `restore of backup ${backup_id}`);
    return state;
  }

  function compare(folder: string, tree: readonly string[], what: string): void {
    const found = new Set(fingerprintOf(folder));
    const missing = tree.filter((line) => !found.has(line));
    count('restores compared');
    if (missing.length === 0 && found.size === tree.length) return;
    records.losses.push(`${what}: ${missing.length} of ${tree.length} entries differ`);
  }

  async function transfer(from: ChaosAccount, to: ChaosAccount, cents: number): Promise<void> {
    const body = { recipient_email: to.email, amount: cents / 100 };
    const answer = await from.call('POST', '/users/me/transfer-credits', body);
    if (isAccepted('transfer', answer)) records.transfers.push({ from, to, uusd: cents * 10_000 });
  }

  /** Records a payment with the operator's command, which is repeated until it has succeeded. */
  async function topUp(account: ChaosAccount, dollars: number): Promise<void> {
    const words = ['pay-in', account.email, `${dollars}.00`, `chaos-${systemRandom.uuid()}`];
    const isPaid = async () => {
      const { isOk } = await ledgerCommand(world.database, words);
      if (!isOk) await systemClock.sleep(POLL_MS);
      return isOk;
    };
    await eventually('a payment', isPaid, PAID_WITHIN_MS);
    count('top-up');
    records.payments.push({ account, uusd: dollars * 1_000_000 });
  }

  /** Runs `work` while no other backup or restore of this run uses the pod. */
  async function using(pod: ChaosPod, work: () => Promise<unknown>): Promise<void> {
    pod.isBusy = true;
    await work().finally(() => {
      pod.isBusy = false;
    });
  }

  const BEGIN: Record<OperationKind, (draw: number, other: number) => Promise<unknown> | null> = {
    rent: (draw, other) => rent(pick(world.accounts, draw), pick(world.nodes, other).id),
    remove: (draw) => perhaps(idlePods(), draw, remove),
    reboot: (draw) => perhaps(livePods(), draw, reboot),
    backup: (draw, other) =>
      perhaps(idlePods(), draw, (pod) => using(pod, () => backup(pod, 1 + (other % 24)))),
    restore: (draw, other) =>
      perhaps(idlePods(), draw, (pod) => {
        const own = backups.filter(({ account }) => account === pod.account);
        if (own.length === 0) return Promise.resolve();
        return using(pod, () => restore(pod, pick(own, other)));
      }),
    transfer: (draw, other) => {
      const from = draw % world.accounts.length;
      const to = (from + 1 + (other % (world.accounts.length - 1))) % world.accounts.length;
      const cents = 1 + (other % 100);
      return transfer(pick(world.accounts, from), pick(world.accounts, to), cents);
    },
    topUp: (draw, other) => topUp(pick(world.accounts, draw), 1 + (other % 5)),
  };

  return {
    records,
    rent,
    remove,
    restore,
    topUp,
    livePods,
    /** Runs the plan until `signal` aborts, then waits for the operations that have begun. */
    async run(plan: readonly PlannedOperation[], signal: AbortSignal): Promise<void> {
      const startMs = systemClock.monotonicMs();
      const running: Promise<void>[] = [];
      for (const { atMs, kind, draw, other } of plan) {
        const waitMs = startMs + atMs - systemClock.monotonicMs();
        if (waitMs > 0) await systemClock.sleep(waitMs, signal);
        note(`operation: ${kind}`);
        const begun = BEGIN[kind](draw, other);
        if (begun === null) continue;
        running.push(
          begun.then(
            () => undefined,
            (error: unknown) => {
              records.losses.push(`${kind}: ${error}`);
            },
          ),
        );
      }
      await Promise.all(running);
    },
  };
}

function pick<T>(all: readonly T[], draw: number): T {
  const found = all[draw % all.length];
  if (found === undefined) throw new Error('nothing to choose from');
  return found;
}

function perhaps<T>(all: readonly T[], draw: number, work: (one: T) => Promise<unknown>) {
  return all.length === 0 ? null : work(pick(all, draw));
}

/** Replaces some files of the folder. */
function writeData(folder: string, mib: number): void {
  mkdirSync(join(folder, 'deep', 'deeper'), { recursive: true });
  const name = `file-${mib % 5}`;
  rmSync(join(folder, name), { force: true });
  writeFileSync(join(folder, name), systemRandom.bytes(mib * MIB));
  writeFileSync(join(folder, 'deep', 'deeper', `small-${mib}`), systemRandom.uuid());
  writeFileSync(join(folder, 'text'), `${systemRandom.uuid()}\n`.repeat(10_000));
}
