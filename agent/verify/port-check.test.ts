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

const said = (port: number) => text(connect({ port, host: '127.0.0.1' }));

it('opens what is free of its range, and each port answers for itself until the end', async () => {
  const ports = [first, first + 1, first + 2, 22];
  expect(await checks.open({ ...request, ports }, stopping.signal)).toEqual({
    opened: [first + 1, first + 2],
  });
  expect(await said(first + 1)).toBe(portAnswer(request, first + 1));
  await expect(checks.open({ ...request, ports }, stopping.signal)).rejects.toThrow('under way');
  stopping.abort();
  await eventually('closed', () => probePort(first + 1));
});

it('leaves rented hosts alone, and does nothing for others', async () => {
  const ports = [first + 1];
  const other = { ...request, ports, executor_id: 'another' };
  await expect(checks.open(other, stopping.signal)).rejects.toThrow('another executor');
  isRented = true;
  await expect(checks.open({ ...request, ports }, stopping.signal)).rejects.toThrow('left alone');
});

it('answers otherwise for each port, host and question', () => {
  const answers = [
    portAnswer(request, 1),
    portAnswer(request, 2),
    portAnswer({ ...request, executor_id: 'b' }, 1),
    portAnswer({ ...request, nonce: 'B'.repeat(22) }, 1),
  ];
  expect(new Set(answers).size).toBe(4);
});
