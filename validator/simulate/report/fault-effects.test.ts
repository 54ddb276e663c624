import { expect, it } from 'vitest';
import { type EffectSources, effectsOf, type UsedTime } from './fault-effects.ts';
import type { KnownFault } from './fault-tally.ts';

const HOUR_MS = 3_600_000;
const hours = (count: number) => count * HOUR_MS;

const REGION: KnownFault = {
  kind: 'region',
  region: 'eu',
  executors: ['a', 'b'],
  fromMs: hours(30),
  toMs: hours(42),
  wallAheadMs: 0,
};
const DIES: KnownFault = {
  ...REGION,
  kind: 'dies',
  region: null,
  executors: ['a'],
  fromMs: hours(50),
  toMs: null,
};

const used = (pod: string, executor: string, [from, to]: [number, number]): UsedTime => ({
  pod,
  executor,
  fromMs: hours(from),
  toMs: hours(to),
  isCharged: true,
  isLost: false,
  gpus: 1,
  usdPerHour: 2,
});

function sourcesOf(change: Partial<EffectSources>): EffectSources {
  return {
    faults: [REGION, DIES],
    used: [],
    lost: [],
    money: new Map(),
    providerShare: 0.95,
    failedChecks: new Map(),
    hostOf: (executor) => ({ name: `host of ${executor}`, gpu: 'H100', region: 'eu' }),
    startMs: 0,
    endMs: hours(72),
    ...change,
  };
}

it('divides time without charge between provider and marketplace', () => {
  const [region, dies] = effectsOf(
    sourcesOf({
      used: [
        used('p1', 'a', [20, 29.5]),
        // Contact was lost half an hour before the fault was due to be observed.
        { ...used('p1', 'a', [29.5, 42.5]), isLost: true, isCharged: false },
        used('p1', 'a', [42.5, 49]),
        used('p2', 'b', [10, 31]),
        used('p3', 'c', [10, 60]),
      ],
      failedChecks: new Map([[REGION, 7]]),
    }),
  );
  expect(region).toEqual({
    kind: 'region',
    region: 'eu',
    gpu: null,
    host: null,
    host_region: null,
    from_hours: 30,
    to_hours: 42,
    hosts: 2,
    pods: 2,
    interruptions: 0,
    failed_starts: 0,
    failed_checks: 7,
    lost_pod_hours: 13,
    uncharged_usd: 26,
    refunds_usd: 0,
    provider_loss_usd: 26 * 0.95,
    platform_loss_usd: expect.closeTo(26 * 0.05),
    renter_loss_usd: 0,
  });
  expect(dies).toMatchObject({ gpu: 'H100', to_hours: null, pods: 0, lost_pod_hours: 0 });
  expect(dies).toMatchObject({ host: 'host of a', host_region: 'eu' });
});

it('assigns lost pods to the later fault of their host, with their refunds', () => {
  const lost = { executor: 'a', hasRun: true };
  const money = { paidUsd: 10, refundedUsd: 4, providerRefundedUsd: 3.8 };
  const [region, dies] = effectsOf(
    sourcesOf({
      lost: [
        { ...lost, pod: 'p1', atMs: hours(51) },
        { ...lost, pod: 'p2', atMs: hours(43) },
        { ...lost, pod: 'p3', atMs: hours(44), hasRun: false },
        // No fault of the host explains these.
        { ...lost, pod: 'p4', atMs: hours(49) },
        { ...lost, pod: 'p5', executor: 'c', atMs: hours(35) },
      ],
      money: new Map(['p1', 'p2', 'p3', 'p4', 'p5'].map((pod) => [pod, money])),
    }),
  );
  expect(region).toMatchObject({ interruptions: 1, failed_starts: 1, renter_loss_usd: 10 });
  expect(dies).toMatchObject({
    interruptions: 1,
    failed_starts: 0,
    refunds_usd: 4,
    provider_loss_usd: 3.8,
    platform_loss_usd: expect.closeTo(0.2),
    renter_loss_usd: 10,
  });
});

it('compares times of the wall clock after a jump', () => {
  const jumped = { ...REGION, wallAheadMs: hours(2) };
  const time = { ...used('p1', 'a', [42.5, 43.5]), isLost: true, isCharged: false };
  const [region] = effectsOf(sourcesOf({ faults: [jumped], used: [time] }));
  expect(region).toMatchObject({ pods: 1, lost_pod_hours: 1 });
});
