/** Keeps faulty cards from new pods: asks the driver, reads the kernel's log, remembers both (agent reference 9). */

import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type DatabaseSync, inTransaction } from '#shared/runtime/sqlite.ts';
import { planCordons } from './cordons.ts';
import type { GpuDriver } from './gpu-driver.ts';
import type { GpuHealthStore } from './gpu-health.store.ts';
import type { KernelLog } from './kernel-log.ts';
import { CORDONING_XIDS, type Xid, xidOf } from './xid.ts';

/** The driver's document is large, and faults of this kind stay. */
export const GPU_HEALTH_INTERVAL_MS = 30_000;
export const KERNEL_LOG_INTERVAL_MS = 5_000;

export type GpuHealthPorts = {
  driver: GpuDriver;
  store: GpuHealthStore;
  database: DatabaseSync;
  kernelLog: KernelLog;
  clock: Clock;
  log: Log;
  /** Of this boot of the host; empty when it is not known. */
  bootId: string;
  /** When the host booted, by its present clock, milliseconds since the epoch. */
  bootMs(): number;
  leasedUuids(): string[];
  /** The host has booted since the last run: no process of before is left. Inside a transaction. */
  onReboot(): void;
  /** The pod that has a card, or a part of it. */
  holderOf(uuid: string): string | null;
};

export type GpuHealthJob = ReturnType<typeof createGpuHealthJob>;

export function createGpuHealthJob(ports: GpuHealthPorts) {
  const { driver, store, database, kernelLog, clock, log, bootId } = ports;
  let unreadable = false;

  /** Once per boot: cards may have been taken out, and a reboot is what Xids ask for. */
  function followBoot(): void {
    const cursor = store.cursor();
    if (cursor?.boot_id === bootId) return;
    inTransaction(database, () => {
      if (cursor !== null) {
        store.forgetBoot();
        ports.onReboot();
      }
      store.setCursor({ boot_id: bootId, sequence: -1 });
    });
  }

  function keep({ sequence, uptimeMs, pci, code }: Xid): void {
    const at_ms = Math.round(ports.bootMs() + uptimeMs);
    const card = store.cards().find((other) => other.pci === pci);
    const pod_id = card === undefined ? null : ports.holderOf(card.uuid);
    store.addXid({ boot_id: bootId, sequence, at_ms, pci, code, pod_id });
    log.warn({ pci, xid: code, pod_id, gpu: card?.uuid }, 'the driver reports an error of a GPU');
    if (!CORDONING_XIDS.has(code)) return;
    const known = store
      .cordons()
      .some(({ subject, source }) => subject === pci && source === 'xid');
    // The first one says since when.
    if (known) return;
    const message = `Xid ${code} in the kernel's log`;
    store.putCordon({ subject: pci, source: 'xid', reason: 'Xid', message, since_ms: at_ms });
  }

  return {
    /** The driver's findings. Nothing changes while the driver does not answer. */
    async runOnce(): Promise<void> {
      followBoot();
      const reading = await driver.health();
      if (reading === null) return;
      inTransaction(database, () => {
        const cordons = store.cordons();
        const leased = ports.leasedUuids();
        const facts = { nowMs: clock.now(), cards: store.cards(), leased, cordons };
        const plan = planCordons(reading, facts);
        for (const card of plan.seen) store.putCard(card);
        for (const cordon of plan.drop) store.dropCordon(cordon);
        for (const cordon of plan.put) {
          store.putCordon(cordon);
          log.error({ gpu: cordon.subject, ...cordon }, 'a GPU is kept from new pods');
        }
      });
    },
    /** What was read and how far is written together: a record counts once, whenever the agent is killed. */
    readKernelLog(): void {
      followBoot();
      try {
        const records = kernelLog.read();
        const last = store.cursor()?.sequence ?? -1;
        const fresh = records.filter(({ sequence }) => sequence > last);
        if (fresh.length === 0) return;
        inTransaction(database, () => {
          for (const record of fresh) {
            const xid = xidOf(record);
            if (xid !== null) keep(xid);
          }
          const sequence = Math.max(...fresh.map((record) => record.sequence));
          store.setCursor({ boot_id: bootId, sequence });
        });
        unreadable = false;
      } catch (error) {
        if (!unreadable) log.warn({ detail: messageOf(error) }, 'the kernel log cannot be read');
        unreadable = true;
        // What was read and not kept is read again.
        kernelLog.close();
      }
    },
  };
}
