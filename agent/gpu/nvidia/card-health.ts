/** What a card's part of the document says of its faults, under the names of all drivers. Pure. */
import { child, countOf, rawAt, textAt, textOf } from './values.ts';

/** The driver's words on a card's faults; null where it has none. */
export type CardHealth = {
  /** Errors that ECC could not correct since the driver was loaded. */
  uncorrectableErrors: number | null;
  /** The lifetime count of such errors in SRAM is beyond what NVIDIA accepts. */
  sramThresholdExceeded: string | null;
  rowRemapPending: string | null;
  rowRemapFailure: string | null;
  /** Page retirement is what older cards have for row remapping. */
  retirementPending: string | null;
  /** `None`, or what has to be done to the card: `Reset`, `Reboot`, `Drain P2P`, … */
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
    recoveryAction: textOf(rawAt(gpu, 'gpu_recovery_action')),
  };
}

/** Named by kind of memory since Ampere, as double-bit errors with a sum before. */
function uncorrectableIn(counters: unknown): number | null {
  const names = ['sram_uncorrectable', 'dram_uncorrectable'];
  const kinds = ['sram_uncorrectable_parity', 'sram_uncorrectable_secded', ...names];
  const amounts = [
    ...kinds.map((name) => countOf(rawAt(counters, name))),
    countOf(rawAt(child(counters, 'double_bit'), 'total')),
  ].filter((amount) => amount !== null);
  return amounts.length === 0 ? null : amounts.reduce((sum, amount) => sum + amount, 0);
}

// MERGED agent/gpu/nvidia/card-health.ts: Which findings on a card keep new pods from it (agent reference 9, health gates). Pure.
/** Stable codes; the message says what was read. */
export const FAULT_REASONS = [
  'UncorrectableEcc',
  'SramThresholdExceeded',
  'RowRemapFailure',
  'RowRemapPending',
  'RecoveryActionNeeded',
  'Xid',
  'Lost',
] as const;
export type FaultReason = (typeof FAULT_REASONS)[number];
export type GpuFault = { reason: FaultReason; message: string };

/** What a card says when nothing has to be done to it; some versions give the number. */
const NO_ACTION = /^(?:none|0)$/i;

/**
 * The worst fault of a card, or null. Errors that the driver could not correct count since it was loaded:
 * the lifetime counters never go back, and the rows behind them have long been remapped. Of those only the
 * driver's own verdict on SRAM counts.
 */
export function faultOf(health: CardHealth): GpuFault | null {
  const action = health.recoveryAction;
  const errors = health.uncorrectableErrors ?? 0;
  if (isYes(health.rowRemapFailure)) return fault('RowRemapFailure', 'a row could not be remapped');
  if (isYes(health.sramThresholdExceeded)) {
    return fault('SramThresholdExceeded', 'too many uncorrectable errors in SRAM over its life');
  }
  if (errors > 0) return fault('UncorrectableEcc', `${errors} uncorrectable memory errors`);
  if (isYes(health.rowRemapPending)) {
    return fault('RowRemapPending', 'rows wait to be remapped by a reset');
  }
  if (isYes(health.retirementPending)) {
    return fault('RowRemapPending', 'memory pages wait to be retired by a reboot');
  }
  if (action !== null && !NO_ACTION.test(action)) {
    return fault('RecoveryActionNeeded', `the driver asks for: ${action}`);
  }
  return null;
}

function fault(reason: FaultReason, message: string): GpuFault {
  return { reason, message };
}

function isYes(text: string | null): boolean {
  return text !== null && /^yes$/i.test(text);
}
