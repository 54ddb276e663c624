import { expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createFakeEngine, type FakeEngine } from '../../../test/fakes/engine/fake-engine.ts';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { openDatabase } from '../../database/database.ts';
import { createLeaseStore } from '../../leases/lease.store.ts';
import { removeAll } from '../../pods/remove-all.ts';
import { createFirewallGuard, FirewallUnavailable } from './firewall.ts';
import { createPodNetworks, networkName } from './pod-network.ts';
import { parsePool } from './subnets.ts';

const log = createLog({ name: 'test', level: 'silent' });

/** Two agents that share engine and pool; `of` creates each with its own store. */
function setUp(poolText = '10.0.0.0/26') {
  const clock = createManualClock();
  const engine = createFakeEngine(clock);
  const firewall = { works: true, drift: 0, removed: 0, asserts: 0 };
  const port = {
    bridgePrefix: 'pw',
    async assert() {
      firewall.asserts += 1;
      if (!firewall.works) throw new FirewallUnavailable('no iptables here');
      return { drift: firewall.drift };
    },
    async remove() {
      firewall.removed += 1;
    },
  };
  const pool = parsePool(poolText);
  if (pool === null) throw new Error('no pool');
  const of = (executorId: string, required = false, on: FakeEngine = engine) => {
    const leases = createLeaseStore(openDatabase(':memory:'));
    const drifts: number[] = [];
    const onDrift = (lines: number) => void drifts.push(lines);
    const guard = createFirewallGuard({ firewall: port, required, clock, log, onDrift });
    const networks = createPodNetworks({ engine: on, executorId, leases, pool, firewall: guard });
    return { leases, guard, networks, drifts };
  };
  const placeOf = (podId: string) => engine.networks.get(networkName(podId))?.place;
  return { engine, firewall, port, of, placeOf };
}

it('gives each pod a subnet and a bridge that the firewall rules match, and releases both', async () => {
  const { of, placeOf, engine } = setUp();
  const { networks, leases } = of('one');
  const podId = systemRandom.uuid();
  expect(await networks.ensure(podId)).toBe(networkName(podId));
  const place = placeOf(podId);
  expect(place?.bridgeName).toMatch(/^pw[0-9a-f]{12}$/);
  expect(place?.bridgeName.length).toBeLessThanOrEqual(15);
  expect(leases.heldBy('subnet', podId).map((lease) => lease.key)).toEqual([place?.subnet]);
  await networks.ensure(podId);
  expect(placeOf(podId)).toEqual(place);
  await networks.remove(podId);
  expect(engine.networks.size).toBe(0);
  expect(leases.list('subnet')).toEqual([]);
});

it('tries the next subnet if another agent uses the chosen subnet, until no subnet is left', async () => {
  const { of, engine } = setUp();
  const [one, two] = [of('one'), of('two')];
  const pods = Array.from({ length: 4 }, () => systemRandom.uuid());
  for (const [index, podId] of pods.entries()) {
    await (index % 2 === 0 ? one : two).networks.ensure(podId);
  }
  const subnets = [...engine.networks.values()].map((network) => network.place.subnet);
  expect(subnets.toSorted()).toEqual(
    ['10.0.0.0/28', '10.0.0.16/28', '10.0.0.32/28', '10.0.0.48/28'].toSorted(),
  );
  const late = systemRandom.uuid();
  await expect(one.networks.ensure(late)).rejects.toThrow('Every subnet');
  expect(one.leases.heldBy('subnet', late)).toEqual([]);
  await two.networks.remove(pods[1] ?? '');
  await one.networks.ensure(late);
  expect(engine.networks.size).toBe(4);
});

it('rejects a pod when all subnets are leased', async () => {
  const { of } = setUp('10.0.0.0/28');
  const { networks } = of('one');
  await networks.ensure(systemRandom.uuid());
  await expect(networks.ensure(systemRandom.uuid())).rejects.toThrow('Every subnet');
});

it('starts pods without a firewall only if none is required', async () => {
  const { of, firewall } = setUp();
  firewall.works = false;
  await of('one').networks.ensure(systemRandom.uuid());
  const strict = of('two', true);
  await expect(strict.networks.ensure(systemRandom.uuid())).rejects.toThrow('no iptables here');
  await expect(strict.networks.guarded()).rejects.toThrow('no iptables here');
  await expect(strict.guard.describe()).rejects.toThrow('no iptables here');
  expect(strict.guard.enforced()).toBe(false);
  firewall.works = true;
  await strict.networks.guarded();
  expect(strict.guard.enforced()).toBe(true);
});

it('counts changes of the rules by other programs', async () => {
  const { of, firewall } = setUp();
  const { guard, drifts } = of('one');
  await guard.runOnce();
  firewall.drift = 3;
  await guard.runOnce();
  expect(drifts).toEqual([3]);
});

it('keeps the rules while any agent has a network on the engine', async () => {
  const { of, engine, port, firewall } = setUp();
  await of('one').networks.ensure(systemRandom.uuid());
  await of('two').networks.ensure(systemRandom.uuid());
  await removeAll({ engine, executorId: 'one', firewall: port });
  expect(firewall.removed).toBe(0);
  expect(await removeAll({ engine, executorId: 'two', firewall: port })).toMatchObject({
    networks: 1,
  });
  expect(firewall.removed).toBe(1);
});
