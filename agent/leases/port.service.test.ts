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
  ports.lease('a', [8000, 22]);
  ports.lease('a', [22, 80]);
  expect(ports.portsOf('a')).toEqual([
    { internal: 22, host: 101 },
    { internal: 80, host: 102 },
    { internal: 8000, host: 100 },
  ]);
  expect(ports.freeCount()).toBe(1);
});

it('leases all ports or none in a transaction', () => {
  const { ports, database } = createPorts();
  const tooMany = () => inTransaction(database, () => ports.lease('a', [1, 2, 3, 4, 5]));
  expect(tooMany).toThrow(PortPoolExhausted);
  expect(ports.portsOf('a')).toEqual([]);
});

it('does not lease a released port again during its cooling time', async () => {
  const { ports, clock } = createPorts();
  ports.lease('a', [1, 2, 3, 4]);
  ports.release('a', [1], null);
  expect(ports.portsOf('a')).toEqual([{ internal: 1, host: 100 }]);
  expect(() => ports.lease('b', [1])).toThrow(PortPoolExhausted);
  await clock.advance(PORT_COOLING_MS - 1);
  ports.dropCooled();
  expect(ports.freeCount()).toBe(0);
  await clock.advance(1);
  ports.dropCooled();
  ports.lease('b', [1]);
  expect(ports.portsOf('b')).toEqual([{ internal: 1, host: 101 }]);
});

it('does not lease the port of a pod’s own SSH server to another pod for a day', async () => {
  const { ports, clock } = createPorts();
  ports.lease('a', [22, 80]);
  ports.release('a', [], 22);
  await clock.advance(PORT_COOLING_MS);
  ports.dropCooled();
  ports.lease('b', [1, 2, 3]);
  expect(ports.portsOf('b').map(({ host }) => host)).toEqual([101, 102, 103]);
  await clock.advance(OWN_SSHD_COOLING_MS - PORT_COOLING_MS);
  ports.dropCooled();
  ports.lease('b', [4]);
  expect(ports.portsOf('b')).toContainEqual({ internal: 4, host: 100 });
});

it('replaces ports that other processes use, until the range has none left', async () => {
  const { ports } = createPorts([100, 101]);
  ports.lease('a', [1]);
  await ports.replaceBusy('a');
  expect(ports.portsOf('a')).toEqual([{ internal: 1, host: 102 }]);
  const full = createPorts([100, 101, 102, 103]);
  full.ports.lease('a', [1]);
  await expect(full.ports.replaceBusy('a')).rejects.toThrow(PortPoolExhausted);
});

it('replaces the port that the engine names, or all if it names none', () => {
  const { ports } = createPorts();
  ports.lease('a', [1, 2]);
  ports.replace('a', 'Bind for 0.0.0.0:101 failed: port is already allocated');
  expect(ports.portsOf('a').map(({ host }) => host)).toEqual([100, 102]);
  const other = createPorts();
  other.ports.lease('a', [1, 2]);
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
