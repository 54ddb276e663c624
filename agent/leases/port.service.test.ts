import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { inTransaction } from '#shared/runtime/sqlite.ts';
import { freePorts } from '../../test/fakes/free-ports.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { openDatabase } from '../database/database.ts';
import { createLeaseStore } from './lease.store.ts';
import {
  createPortService,
  OWN_SSHD_COOLING_MS,
  PORT_COOLING_MS,
  PortPoolExhausted,
  probePort,
} from './port.service.ts';

type Scene = ReturnType<typeof createPorts>;

function createPorts(busy: readonly number[] = []) {
  const clock = createManualClock();
  const database = openDatabase(':memory:');
  const leases = createLeaseStore(database);
  const probe = async (port: number) => !busy.includes(port);
  const ports = createPortService({ leases, probe, clock, range: { first: 100, last: 103 } });
  return { clock, database, ports };
}

it('leases each internal port once, and keeps it', () => {
  const { ports } = createPorts();
  ports.lease('a', [8000, 22], null);
  ports.lease('a', [22, 80], null);
  expect(ports.portsOf('a')).toEqual([
    { internal: 22, host: 101 },
    { internal: 80, host: 102 },
    { internal: 8000, host: 100 },
  ]);
  expect(ports.freeCount()).toBe(1);
});

it('leases all ports or none in a transaction', () => {
  const { ports, database } = createPorts();
  const tooMany = () => inTransaction(database, () => ports.lease('a', [1, 2, 3, 4, 5], null));
  expect(tooMany).toThrow(PortPoolExhausted);
  expect(ports.portsOf('a')).toEqual([]);
});

it('does not lease a released port again during its cooling time', async () => {
  const { ports, clock } = createPorts();
  ports.lease('a', [1, 2, 3, 4], null);
  ports.release('a', [1]);
  expect(ports.portsOf('a')).toEqual([{ internal: 1, host: 100 }]);
  expect(() => ports.lease('b', [1], null)).toThrow(PortPoolExhausted);
  await clock.advance(PORT_COOLING_MS - 1);
  ports.dropCooled();
  expect(ports.freeCount()).toBe(0);
  await clock.advance(1);
  ports.dropCooled();
  ports.lease('b', [1], null);
  expect(ports.portsOf('b')).toEqual([{ internal: 1, host: 101 }]);
});

it('does not lease the port of a pod’s own SSH server to another pod for a day', async () => {
  const { ports, clock } = createPorts();
  ports.lease('a', [22, 80], 22);
  expect(ports.portsOf('a')).toContainEqual({ internal: 22, host: 103 });
  ports.release('a', []);
  await clock.advance(PORT_COOLING_MS);
  ports.dropCooled();
  ports.lease('b', [1, 2, 3], null);
  expect(ports.portsOf('b').map(({ host }) => host)).toEqual([100, 101, 102]);
  await clock.advance(OWN_SSHD_COOLING_MS - PORT_COOLING_MS - 1);
  ports.dropCooled();
  expect(() => ports.lease('b', [4], null)).toThrow(PortPoolExhausted);
  await clock.advance(1);
  ports.dropCooled();
  ports.lease('b', [4], null);
  expect(ports.portsOf('b')).toContainEqual({ internal: 4, host: 103 });
});

it.each([
  ['an edit has removed the server', ({ ports }: Scene) => ports.lease('a', [22], null)],
  ['the port was exchanged', ({ ports }: Scene) => ports.replace('a', ':103')],
])('waits for that day, too, if %s', async (_, change) => {
  const scene = createPorts();
  const { ports, clock } = scene;
  ports.lease('a', [22], 22);
  change(scene);
  ports.release('a', []);
  await clock.advance(OWN_SSHD_COOLING_MS - 1);
  ports.dropCooled();
  ports.lease('b', [1, 2], null);
  expect(ports.portsOf('b').map(({ host }) => host)).toEqual([100, 101]);
  expect(ports.isLeased(103)).toBe(true);
  await clock.advance(1);
  ports.dropCooled();
  expect(ports.isLeased(103)).toBe(false);
});

it('leaves half of the range to pods that the SSH gateway serves', () => {
  const { ports } = createPorts();
  for (const pod of ['a', 'b']) {
    ports.lease(pod, [22], 22);
    ports.release(pod, []);
  }
  expect(() => ports.lease('c', [22], 22)).toThrow('no port is free in 102-103');
  ports.lease('c', [22], null);
  expect(ports.portsOf('c')).toEqual([{ internal: 22, host: 100 }]);
});

it('replaces ports that other processes use, until the range has none left', async () => {
  const { ports } = createPorts([100, 101]);
  ports.lease('a', [1], null);
  await ports.replaceBusy('a');
  expect(ports.portsOf('a')).toEqual([{ internal: 1, host: 102 }]);
  const full = createPorts([100, 101, 102, 103]);
  full.ports.lease('a', [1], null);
  await expect(full.ports.replaceBusy('a')).rejects.toThrow(PortPoolExhausted);
});

it('replaces the port that the engine’s error names, or all ports if the error names none', () => {
  const { ports } = createPorts();
  ports.lease('a', [1, 2], null);
  ports.replace('a', 'Bind for 0.0.0.0:101 failed: port is already allocated');
  expect(ports.portsOf('a').map(({ host }) => host)).toEqual([100, 102]);
  const other = createPorts();
  other.ports.lease('a', [1, 2], null);
  other.ports.replace('a', 'address already in use');
  expect(other.ports.portsOf('a').map(({ host }) => host)).toEqual([102, 103]);
});

it('detects by binding whether a port is in use', async () => {
  const { first: port } = await freePorts(1);
  expect(await probePort(port)).toBe(true);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  expect(await probePort(port)).toBe(false);
  await new Promise((resolve) => server.close(resolve));
  expect(await probePort(port)).toBe(true);
});
