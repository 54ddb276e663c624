/** What a card's part of the document says of its faults, under the names of all drivers. Pure. */
import { countOf, textOf } from './nvidia-value.ts';
import { child, rawAt, textAt } from './xml-node.ts';

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
