/**
 * Test rental of a reported node: a hidden rental if the validator makes any, which the host cannot recognise; otherwise
 * the rental probe of an inspection that is made for the report.
 */
import {
  describeMismatches,
  type HiddenRentalFacts,
  type RentalFacts,
} from '../../checks/measured.ts';
import type { RentalProbes } from '../rental-probe/rental-probe.service.ts';
import type { RentNode } from './report.service.ts';

/** Hidden rentals for reports. */
export type ReportedRentals = {
  /** Returns false if the validator makes no hidden rentals. */
  isOn(): boolean;
  /** Returns the result of the newest rental that began at or after `sinceMs` and has ended; null if there is none. */
  resultSince(executorId: string, sinceMs: number): Promise<HiddenRentalFacts | null>;
  /** Queues a rental; returns false if one of the node is already open. */
  rentInFirstFreeMoment(executorId: string): Promise<boolean>;
};

export type RentNodeDeps = {
  rentals: Pick<RentalProbes, 'last'>;
  /** Inspects the executor now; a free host gets a rental probe. */
  recheck(executorId: string): Promise<unknown>;
  hidden: ReportedRentals;
};

export function createRentNode({ rentals, recheck, hidden }: RentNodeDeps): RentNode {
  async function rentHidden(id: string, sinceMs: number): Promise<RentalFacts | null> {
    const result = await hidden.resultSince(id, sinceMs);
    if (result !== null) return rentalFactsOf(result);
    await hidden.rentInFirstFreeMoment(id);
    return null;
  }

  return async ({ id, rented }, sinceMs) => {
    if (hidden.isOn()) return rentHidden(id, sinceMs);
    const lastSince = async () => {
      const last = await rentals.last(id);
      return last !== null && last.at_ms >= sinceMs ? last : null;
    };
    const last = await lastSince();
    if (last !== null && last.status !== 'not_run') return last;
    if (rented) return null;
    await recheck(id);
    return lastSince();
  };
}

/** A fact that only one of the two measurements found below the offer decides nothing. */
function rentalFactsOf({ mismatches, seen_once: once, ended_ms }: HiddenRentalFacts): RentalFacts {
  const facts = { ms: 0, at_ms: ended_ms, memory: null, pods: [], repeated: false };
  if (mismatches.length === 0) {
    const status = once.length === 0 ? 'passed' : 'not_run';
    return { ...facts, status, step: null, detail: '', refused: once.length > 0 };
  }
  const step = mismatches.some(({ fact }) => fact !== 'login') ? 'inside' : 'login';
  const detail = describeMismatches(mismatches);
  return { ...facts, status: 'failed', step, detail, refused: false };
}
