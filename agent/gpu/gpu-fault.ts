/** Which findings on a card keep new pods from it (agent reference 9, health gates). Pure. */
import type { CardHealth } from './card-health.ts';

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
