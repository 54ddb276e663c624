import { expect, it } from 'vitest';
import { findingsOf } from '#shared/check/doctor.ts';
import { listeningIn, PORT_CHECKS, type PortFacts } from './ports.check.ts';

const ID = '00000000-0000-4000-8000-00000000000e';
const RUNNING: PortFacts = {
  agentHost: '0.0.0.0',
  agentPort: 8080,
  secure: true,
  range: { first: 20_000, last: 20_099 },
  executorId: ID,
  ephemeral: { value: { first: 32_768, last: 60_999 } },
  local: { value: ID },
  isListening: true,
  listening: { value: [20_001] },
  refused: null,
  tried: 0,
  outside: { address: '9.9.9.9', answered: { value: ID } },
};
const STOPPED = {
  ...RUNNING,
  local: { problem: 'the port answers plain HTTP; the doctor sent TLS' },
  isListening: false,
  refused: [],
  tried: 24,
};
const addressIn = (place: string) => place.replace(/:8080$/, '').replace(/[[\]]/g, '');
const busy = Array.from({ length: 90 }, (_, index) => 20_000 + index);

it.each<[string, string, string, PortFacts]>([
  ['agent-port', 'ok', 'answers', RUNNING],
  ['agent-port', 'ok', 'is free', STOPPED],
  [
    'agent-port',
    'fail',
    'not answer as an agent: the port answers plain HTTP; the doctor sent TLS',
    { ...STOPPED, isListening: true },
  ],
  ['agent-port', 'fail', 'another executor', { ...RUNNING, local: { value: 'x' } }],
  ['agent-port', 'fail', 'AGENT_PORT_RANGE', { ...STOPPED, agentPort: 20_005 }],
  ['pod-ports-ephemeral', 'ok', 'outside', RUNNING],
  [
    'pod-ports-ephemeral',
    'warn',
    'overlap',
    { ...RUNNING, range: { first: 32_000, last: 33_000 } },
  ],
  ['pod-ports-ephemeral', 'unknown', 'ENOENT', { ...RUNNING, ephemeral: { problem: 'ENOENT' } }],
  ['pod-ports-free', 'ok', 'all free', STOPPED],
  ['pod-ports-free', 'ok', '1 of 100', RUNNING],
  ['pod-ports-free', 'warn', '20001', { ...STOPPED, refused: [20_001] }],
  ['pod-ports-free', 'fail', '2 of 2', { ...STOPPED, refused: [1, 2], tried: 2 }],
  ['pod-ports-free', 'warn', '90 of 100', { ...RUNNING, listening: { value: busy } }],
  ['reachability', 'ok', 'cannot find out', RUNNING],
  ['reachability', 'unknown', 'does not answer', STOPPED],
  ...['10.0.0.4', '203.0.113.9', 'fd00::4', 'fe80::1', '2001:db8::1', 'gpu-host'].map(
    (address): [string, string, string, PortFacts] => [
      'reachability',
      'unknown',
      'private',
      { ...RUNNING, outside: { address, answered: { value: ID } } },
    ],
  ),
  ...['[2a01:4f8::9]:8080', '9.9.9.9:8080', 'gpu.example.com:8080'].map(
    (place): [string, string, string, PortFacts] => [
      'reachability',
      'ok',
      `answers at ${place} from`,
      { ...RUNNING, outside: { address: addressIn(place), answered: { value: ID } } },
    ],
  ),
  [
    'reachability',
    'fail',
    'nothing answers',
    { ...RUNNING, outside: { address: '9.9.9.9', answered: { problem: 'refused' } } },
  ],
  [
    'reachability',
    'fail',
    'another executor',
    { ...RUNNING, outside: { address: '9.9.9.9', answered: { value: 'x' } } },
  ],
  ['reachability', 'warn', 'AGENT_HOST', { ...RUNNING, agentHost: '127.0.0.1' }],
  ['reachability', 'unknown', 'no default route', { ...RUNNING, outside: null }],
])('reports the check %s as %s: %s', (id, status, words, facts) => {
  const found = findingsOf(PORT_CHECKS, facts).find((each) => each.id === id);
  expect(found).toMatchObject({ status, finding: expect.stringContaining(words) });
});

it('reads listening ports from the kernel’s table', () => {
  const table = [
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
    '   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1',
    '   1: 0100007F:4E20 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 2 1',
    '   2: 00000000000000000000000000000000:4E21 00000000000000000000000000000000:0000 0A 00000000:0',
  ].join('\n');
  expect(listeningIn(table, '0A')).toEqual([8080, 20_001]);
});

it('suggests a request from another machine with the agent’s scheme and outside address', () => {
  const remedyFor = (address: string, secure: boolean) =>
    findingsOf(PORT_CHECKS, {
      ...RUNNING,
      secure,
      outside: { address, answered: { value: ID } },
    }).at(-1)?.remedy;
  expect(remedyFor('2a01:4f8::9', true)).toContain('curl -k https://[2a01:4f8::9]:8080/version');
  expect(remedyFor('9.9.9.9', false)).toContain('curl http://9.9.9.9:8080/version');
  expect(remedyFor('10.0.0.4', true)).toContain('curl -k https://PUBLIC-ADDRESS:8080/version');
});
