/** Compares what providers keep that rent their own hosts with what honest hosts with the same GPUs keep. Pure. */
import type { Report } from './report.ts';
import { sum } from './statistics.ts';
import type { WeighedHost } from './weight-schemas.ts';

/** Amounts in USD per host and day. */
export type KeptByGroup = {
  hosts: number;
  weightShare: number;
  /** Share of the rates of all GPUs. */
  valueShare: number;
  income: number;
  ownRentals: number;
  rewards: number;
  /** Income and rewards less the payments for own rentals. */
  kept: number;
};

const HOURS_PER_DAY = 24;

/**
 * Compares both groups over a run of `hours`. The amounts of honest hosts are scaled to the mean GPUs of the hosts that
 * their provider rents, by the rates of the weight policy. Null if no provider rents its host.
 */
export function compareSelfRental(
  weights: Report['weights'],
  hours: number,
): { self: KeptByGroup; honest: KeptByGroup } | null {
  const self = weights.filter(({ rents_itself: rentsItself }) => rentsItself);
  const honest = weights.filter(({ cheat, ...host }) => cheat === null && !host.rents_itself);
  if (self.length === 0) return null;
  const days = hours / HOURS_PER_DAY;
  const valuePerHost = rateShareOf(self) / self.length;
  return { self: kept(self, valuePerHost, days), honest: kept(honest, valuePerHost, days) };
}

const rateShareOf = (hosts: readonly WeighedHost[]): number =>
  sum(hosts.map(({ value_share: share }) => share));

function kept(hosts: readonly WeighedHost[], valuePerHost: number, days: number): KeptByGroup {
  const valueShare = rateShareOf(hosts);
  const amount = (usdOf: (host: WeighedHost) => number): number =>
    valueShare === 0 ? 0 : (sum(hosts.map(usdOf)) / days / valueShare) * valuePerHost;
  const income = amount((host) => host.income_usd);
  const ownRentals = amount((host) => host.own_rentals_usd);
  const rewards = amount((host) => host.reward_usd);
  return {
    hosts: hosts.length,
    weightShare: sum(hosts.map(({ weight_share: share }) => share)),
    valueShare,
    income,
    ownRentals,
    rewards,
    kept: income + rewards - ownRentals,
  };
}
