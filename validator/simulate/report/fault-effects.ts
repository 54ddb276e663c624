/** Effects of each fault on hosts, pods and money, and the party that bears them. Pure. */
import type { KnownFault } from './fault-tally.ts';
import type { FaultEffect } from './report.ts';
import { sum } from './statistics.ts';

/** Time in which a pod existed in one state. Times are of the wall clock. */
export type UsedTime = {
  pod: string;
  executor: string;
  fromMs: number;
  toMs: number;
  isCharged: boolean;
  /** True if the pod was not charged because of its host. */
  isLost: boolean;
  gpus: number;
  /** Price of all GPUs of the pod. */
  usdPerHour: number;
};

/** A pod that ended because of its host. `atMs`: time at which its renter saw the end, without jumps of the clock. */
export type LostPod = {
  pod: string;
  executor: string;
  atMs: number;
  hasRun: boolean;
};

/** Money of a pod in USD. */
export type PodMoney = { paidUsd: number; refundedUsd: number; providerRefundedUsd: number };

export type EffectSources = {
  faults: readonly KnownFault[];
  used: readonly UsedTime[];
  lost: readonly LostPod[];
  money: ReadonlyMap<string, PodMoney>;
  /** Share of the charges that providers get. */
  providerShare: number;
  /** Failed checks that the fault explains, by fault. */
  failedChecks: ReadonlyMap<KnownFault, number>;
  hostOf(executor: string): { name: string; gpu: string; region: string } | undefined;
  startMs: number;
  endMs: number;
};

const HOUR_MS = 3_600_000;
/** Renters observe the end of a pod hours later, and the central API gives up a silent host some hours later. */
const AFTERMATH_MS = 6 * HOUR_MS;

/** Returns the effects in the order of the faults. An effect of two faults of a host belongs to the later one. */
export function effectsOf(sources: EffectSources): FaultEffect[] {
  const { faults, used, lost, endMs } = sources;
  const usedBy = Map.groupBy(used, ({ executor }) => executor);
  const byHost = faultsByHost(faults);
  const lostTime = groupByFault(
    used.filter(({ isLost }) => isLost),
    (time) => longestOverlap(byHost.get(time.executor) ?? [], time, endMs),
  );
  const lostPods = groupByFault(lost, (pod) =>
    (byHost.get(pod.executor) ?? []).findLast(
      (fault) => fault.fromMs <= pod.atMs && pod.atMs <= (fault.toMs ?? endMs) + AFTERMATH_MS,
    ),
  );
  return faults.map((fault) => {
    const pods = new Set(
      fault.executors
        .flatMap((executor) => usedBy.get(executor) ?? [])
        .filter((time) => overlapMs(fault, time, endMs) > 0)
        .map(({ pod }) => pod),
    );
    const effect = { time: lostTime.get(fault) ?? [], pods: lostPods.get(fault) ?? [] };
    return { ...placeOf(fault, sources), pods: pods.size, ...lossOf(fault, effect, sources) };
  });
}

function placeOf(fault: KnownFault, { startMs, hostOf }: EffectSources) {
  const { kind, region, executors, fromMs, toMs } = fault;
  const [first = ''] = executors;
  const only = executors.length === 1 ? hostOf(first) : undefined;
  return {
    kind,
    region,
    gpu: only?.gpu ?? null,
    host: only?.name ?? null,
    host_region: only?.region ?? null,
    from_hours: (fromMs - startMs) / HOUR_MS,
    to_hours: toMs === null ? null : (toMs - startMs) / HOUR_MS,
    hosts: executors.length,
  };
}

type Effect = { time: readonly UsedTime[]; pods: readonly LostPod[] };

function lossOf(
  fault: KnownFault,
  { time, pods }: Effect,
  { money, providerShare, failedChecks }: EffectSources,
) {
  const hours = (each: UsedTime) => (each.toMs - each.fromMs) / HOUR_MS;
  const uncharged = sum(time.map((each) => hours(each) * each.usdPerHour));
  const interrupted = pods.filter(({ hasRun }) => hasRun);
  const ofPods = interrupted.flatMap(({ pod }) => money.get(pod) ?? []);
  const refunds = sum(ofPods.map(({ refundedUsd }) => refundedUsd));
  const providerRefunds = sum(ofPods.map(({ providerRefundedUsd }) => providerRefundedUsd));
  return {
    interruptions: interrupted.length,
    failed_starts: pods.length - interrupted.length,
    failed_checks: failedChecks.get(fault) ?? 0,
    lost_pod_hours: sum(time.map(hours)),
    uncharged_usd: uncharged,
    refunds_usd: refunds,
    provider_loss_usd: uncharged * providerShare + providerRefunds,
    platform_loss_usd: uncharged * (1 - providerShare) + refunds - providerRefunds,
    renter_loss_usd: sum(ofPods.map(({ paidUsd }) => paidUsd)),
  };
}

function faultsByHost(faults: readonly KnownFault[]): ReadonlyMap<string, readonly KnownFault[]> {
  const hosts = new Map<string, KnownFault[]>();
  for (const fault of faults) {
    for (const executor of fault.executors) {
      const own = hosts.get(executor) ?? [];
      hosts.set(executor, own);
      own.push(fault);
    }
  }
  return hosts;
}

function groupByFault<T>(
  items: readonly T[],
  faultOf: (item: T) => KnownFault | undefined,
): ReadonlyMap<KnownFault | undefined, readonly T[]> {
  return Map.groupBy(items, faultOf);
}

function longestOverlap(
  faults: readonly KnownFault[],
  time: UsedTime,
  endMs: number,
): KnownFault | undefined {
  const overlaps = faults.map((fault) => ({ fault, ms: overlapMs(fault, time, endMs) }));
  return overlaps.filter(({ ms }) => ms > 0).toSorted((a, b) => b.ms - a.ms)[0]?.fault;
}

/** Returns the common time of a fault and of a pod in milliseconds. */
function overlapMs(fault: KnownFault, { fromMs, toMs }: UsedTime, endMs: number): number {
  const ahead = fault.wallAheadMs;
  const [from, to] = [fault.fromMs + ahead, (fault.toMs ?? endMs) + ahead];
  return Math.min(toMs, to) - Math.max(fromMs, from);
}
