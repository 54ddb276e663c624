/** Cordons faulty cards: queries the driver, reads the kernel log, and stores the findings of both. */

import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type DatabaseSync, inTransaction } from '#shared/runtime/sqlite.ts';
import { planCordons } from './cordons.ts';
import type { GpuDriver } from './gpu-driver.ts';
import type { GpuHealthStore } from './gpu-health.store.ts';
import type { KernelLog } from './kernel-log.ts';
import { CORDONING_XIDS, type Xid, xidOf } from './xid.ts';

/**
 * Interval of the health checks, ms. Long, because the driver's XML document is large and such faults
 * persist.
 */
export const GPU_HEALTH_INTERVAL_MS = 30_000;
export const KERNEL_LOG_INTERVAL_MS = 5_000;

export type GpuHealthPorts = {
  driver: GpuDriver;
  store: GpuHealthStore;
  database: DatabaseSync;
  kernelLog: KernelLog;
  clock: Clock;
  log: Log;
  /** Id of this boot of the host; empty if unknown. */
  bootId: string;
  /** Time of the boot by the host's current clock, milliseconds since the epoch. */
  bootMs(): number;
  leasedUuids(): string[];
  /** Called inside a transaction if the host booted since the last run: processes from before the boot have ended. */
  onReboot(): void;
  /** Returns the pod that holds a card. */
  holderOf(uuid: string): string | null;
};

export type GpuHealthJob = ReturnType<typeof createGpuHealthJob>;

export function createGpuHealthJob(ports: GpuHealthPorts) {
  const { driver, store, database, kernelLog, clock, log, bootId } = ports;
  let isUnreadable = false;

  /** Resets findings once per boot: cards may have been removed, and a reboot clears Xids. */
  function resetAfterBoot(): void {
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

  function recordXid({ sequence, uptimeMs, pci, code }: Xid): void {
    const at_ms = Math.round(ports.bootMs() + uptimeMs);
    const card = store.cards().find((other) => other.pci === pci);
    const pod_id = card === undefined ? null : ports.holderOf(card.uuid);
    store.addXid({ boot_id: bootId, sequence, at_ms, pci, code, pod_id });
    log.warn({ pci, xid: code, pod_id, gpu: card?.uuid }, 'driver reported an Xid');
    if (!CORDONING_XIDS.has(code)) return;
    const known = store
      .cordons()
      .some(({ subject, source }) => subject === pci && source === 'xid');
    // The cordon starts at the time of the first Xid.
    if (known) return;
    const message = `Xid ${code} in the kernel log`;
    store.putCordon({ subject: pci, source: 'xid', reason: 'Xid', message, since_ms: at_ms });
  }

  return {
    /** Updates cordons from the driver's findings; changes nothing while the driver does not answer. */
    async runOnce(): Promise<void> {
      resetAfterBoot();
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
          log.error({ gpu: cordon.subject, ...cordon }, 'GPU cordoned');
        }
      });
    },
    /** Stores records and cursor in one transaction, so that a kill of the agent neither loses nor repeats one. */
    readKernelLog(): void {
      resetAfterBoot();
      try {
        const records = kernelLog.read();
        const last = store.cursor()?.sequence ?? -1;
        const fresh = records.filter(({ sequence }) => sequence > last);
        if (fresh.length === 0) return;
        inTransaction(database, () => {
          for (const record of fresh) {
            const xid = xidOf(record);
            if (xid !== null) recordXid(xid);
          }
          const sequence = Math.max(...fresh.map((record) => record.sequence));
          store.setCursor({ boot_id: bootId, sequence });
        });
        isUnreadable = false;
      } catch (error) {
        if (!isUnreadable) log.warn({ detail: messageOf(error) }, 'kernel log cannot be read');
        isUnreadable = true;
        // The log is opened again from its start, so records that were read but not stored are read again.
        kernelLog.close();
      }
    },
  };
}
