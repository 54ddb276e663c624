import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { portAnswer } from '#shared/api/agent/host-checks.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { freePorts } from '../../test/fakes/free-ports.ts';
import { probePort } from '../leases/port.service.ts';
import { createPortCheckService, type PortCheckService } from './port-check.service.ts';

const EXECUTOR = '3f9f41a6-0001-4000-8000-000000000001';
const request = { nonce: 'A'.repeat(22), executor_id: EXECUTOR, open_ms: 5_000 };

let first: number;
let isRented: boolean;
let stopping: AbortController;
let checks: PortCheckService;
beforeEach(async () => {
  first = (await freePorts(3)).first;
  [isRented, stopping] = [false, new AbortController()];
  checks = createPortCheckService({
    clock: systemClock,
    executorId: EXECUTOR,
    range: { first, last: first + 2 },
    isLeased: (port) => port === first,
    isRented: () => isRented,
  });
});
afterEach(() => stopping.abort());

const textFrom = (port: number) => text(connect({ port, host: '127.0.0.1' }));

it('opens the requested free ports of its range, each of which identifies itself until the check ends', async () => {
  const ports = [first, first + 1, first + 2, 22];
  expect(await checks.open({ ...request, ports }, stopping.signal)).toEqual({
    opened: [first + 1, first + 2],
  });
  expect(await textFrom(first + 1)).toBe(portAnswer(request, first + 1));
  await expect(checks.open({ ...request, ports }, stopping.signal)).rejects.toThrow('in progress');
  stopping.abort();
  await eventually('closed', () => probePort(first + 1));
});

it('rejects checks of rented hosts and of other executors', async () => {
  const ports = [first + 1];
  const other = { ...request, ports, executor_id: 'another' };
  await expect(checks.open(other, stopping.signal)).rejects.toThrow('another executor');
  isRented = true;
  await expect(checks.open({ ...request, ports }, stopping.signal)).rejects.toThrow('not checked');
});

it('answers differently for each port, host and nonce', () => {
  const answers = [
    portAnswer(request, 1),
    portAnswer(request, 2),
    portAnswer({ ...request, executor_id: 'b' }, 1),
    portAnswer({ ...request, nonce: 'B'.repeat(22) }, 1),
  ];
  expect(new Set(answers).size).toBe(4);
});
