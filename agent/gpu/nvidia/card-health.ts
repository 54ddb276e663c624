/** Health of a card, as nvidia-smi's XML reports it under the names of all driver versions. Pure. */
import type { FaultReason, GpuFault } from '../gpu-driver.ts';
import { child, countOf, rawAt, textAt, textOf } from './values.ts';

/** Health values as printed; null where the driver has no value. */
export type CardHealth = {
  /** Errors that ECC could not correct, counted since the driver was loaded. */
  uncorrectableErrors: number | null;
  /** The lifetime count of such errors in SRAM exceeds NVIDIA's threshold. */
  sramThresholdExceeded: string | null;
  rowRemapPending: string | null;
  rowRemapFailure: string | null;
  /** Page retirement: the predecessor of row remapping on older cards. */
  retirementPending: string | null;
  /** The card has memory that cannot be repaired. */
  unrepairableMemory: string | null;
  /** Repair of a memory channel, or of a texture processing cluster (TPC), that waits for a reset of the card. */
  channelRepairPending: string | null;
  unitRepairPending: string | null;
  /** `None`, or the action that the card needs: `GPU Reset`, `Node Reboot`, `Drain P2P`, `Drain and Reset`. */
  recoveryAction: string | null;
};

export function healthFrom(gpu: unknown): CardHealth {
  const ecc = child(gpu, 'ecc_errors');
  const remapped = child(gpu, 'remapped_rows');
  return {
    uncorrectableErrors: uncorrectableIn(child(ecc, 'volatile')),
    sramThresholdExceeded: textAt(child(ecc, 'aggregate'), 'sram_threshold_exceeded'),
    rowRemapPending: textAt(remapped, 'remapped_row_pending'),
    rowRemapFailure: textAt(remapped, 'remapped_row_failure'),
    retirementPending: textAt(child(gpu, 'retired_pages'), 'pending_retirement'),
    unrepairableMemory: textAt(ecc, 'unrepairable_memory'),
    channelRepairPending: textAt(ecc, 'channel_repair_pending'),
    unitRepairPending: textAt(ecc, 'tpc_repair_pending'),
    recoveryAction: textOf(rawAt(gpu, 'gpu_recovery_action')),
  };
}

/** Cards since Ampere count per kind of memory; older cards report a total of double-bit errors. */
function uncorrectableIn(counters: unknown): number | null {
  const names = ['sram_uncorrectable', 'dram_uncorrectable'];
  const kinds = ['sram_uncorrectable_parity', 'sram_uncorrectable_secded', ...names];
  const amounts = [
    ...kinds.map((name) => countOf(rawAt(counters, name))),
    countOf(rawAt(child(counters, 'double_bit'), 'total')),
  ].filter((amount) => amount !== null);
  return amounts.length === 0 ? null : amounts.reduce((sum, amount) => sum + amount, 0);
}

/** Values of a card that needs no action; some driver versions print the number. */
const NO_ACTION = /^(?:none|0)$/i;
/** Remedies by the driver's words and numbers. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [
    /^(?:(?:gpu )?reset|1)$/i,
    'end the programs on the card, then run nvidia-smi --gpu-reset -i <UUID of the card>',
  ],
  [/^(?:(?:node )?reboot|2)$/i, 'reboot the host'],
  [/^(?:drain p2p|3)$/i, 'end the programs that use NVLink or peer-to-peer access to the card'],
  [
    /^(?:drain and reset|4)$/i,
    'let the pods on the card end, then run nvidia-smi --gpu-reset -i <UUID of the card>',
  ],
];

function remedyOf(action: string): string {
  const remedy = REMEDIES.find(([pattern]) => pattern.test(action))?.[1];
  return remedy ?? "look the action up in the documentation of NVIDIA's driver";
}

/**
 * Returns the worst fault of a card, or null. Counts uncorrectable errors since the driver was loaded, because lifetime
 * counters never decrease, not even after the affected rows were remapped. The only lifetime value that counts is the
 * driver's own verdict on SRAM.
 */
export function faultOf(health: CardHealth): GpuFault | null {
  const action = health.recoveryAction;
  const errors = health.uncorrectableErrors ?? 0;
  if (isYes(health.rowRemapFailure)) return fault('RowRemapFailure', 'a row could not be remapped');
  if (isYes(health.sramThresholdExceeded)) {
    return fault(
      'SramThresholdExceeded',
      'too many uncorrectable errors in SRAM over the life of the card',
    );
  }
  if (isYes(health.unrepairableMemory)) {
    return fault('UncorrectableEcc', 'the card has memory that cannot be repaired');
  }
  if (errors > 0) return fault('UncorrectableEcc', `${errors} uncorrectable memory errors`);
  if (isYes(health.rowRemapPending)) {
    return fault('RowRemapPending', 'rows are waiting for a GPU reset to be remapped');
  }
  if (isYes(health.channelRepairPending) || isYes(health.unitRepairPending)) {
    return fault('RowRemapPending', 'a part of the card is waiting for a GPU reset to be repaired');
  }
  if (isYes(health.retirementPending)) {
    return fault('RowRemapPending', 'memory pages are waiting for a reboot to be retired');
  }
  if (action !== null && !NO_ACTION.test(action)) {
    return fault(
      'RecoveryActionNeeded',
      `the driver requests: ${action}; remedy: ${remedyOf(action)}`,
    );
  }
  return null;
}

function fault(reason: FaultReason, message: string): GpuFault {
  return { reason, message };
}

function isYes(text: string | null): boolean {
  return text !== null && /^yes$/i.test(text);
}
