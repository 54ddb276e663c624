import { expect, it } from 'vitest';
import { findingsOf } from '#shared/check/doctor.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { parseCidr } from '../containers/network/subnets.ts';
import { NETWORK_CHECKS, type NetworkFacts, readNetworkFacts, routesIn } from './network.check.ts';

const range = (text: string) => parseCidr(text) ?? { base: 0, prefix: 32 };
const jumps = (inFront: boolean) => [{ parent: 'INPUT', chain: 'X', found: [], inFront }];
const LIMITED = ['-A X -m connlimit --connlimit-above 1 -j DROP'];
const rules = (inFront: boolean, forward = LIMITED) => ({
  value: { input: [], forward, jumps: jumps(inFront) },
});
const GOOD: NetworkFacts = {
  iptables: { value: 'iptables v1.8.9 (nf_tables)' },
  rules: rules(true),
  warnings: '',
  forwardPolicy: { value: 'DROP' },
  forwarding: { value: true },
  routes: { value: [{ device: 'eth0', range: range('192.0.2.0/24') }] },
  pool: range('10.201.0.0/16'),
};
const RUNS = { agentRuns: true, required: false };
const routes = (device: string, text: string) => ({
  routes: { value: [{ device, range: range(text) }] },
});

it('reports a packet filter that does not answer in time as unknown, also if it is required', async () => {
  const facts = await readNetworkFacts({
    clock: systemClock,
    runCommand: async () => ({ exitCode: null, stdout: '', stderr: '', ended: 'timeout' }),
    pool: range('10.201.0.0/16'),
  });
  const findings = findingsOf(NETWORK_CHECKS, { ...facts, agentRuns: true, required: true });
  expect(findings.filter(({ timed_out }) => timed_out)).toMatchObject([
    { id: 'firewall', status: 'unknown', finding: expect.stringContaining('did not end in time') },
    { id: 'forward-policy', status: 'unknown' },
  ]);
});

it('reports no fault of a suitable network', () => {
  expect(findingsOf(NETWORK_CHECKS, { ...GOOD, ...RUNS }).map(({ status }) => status)).toEqual([
    'ok',
    'ok',
    'ok',
    'ok',
  ]);
});

it.each<[string, string, string, Partial<NetworkFacts>]>([
  ['firewall', 'warn', 'cannot be run', { iptables: { problem: 'ENOENT' } }],
  [
    'firewall',
    'unknown',
    'only root',
    { rules: { problem: 'iptables: Permission denied (you must be root)' } },
  ],
  ['firewall', 'warn', 'does not work', { rules: { problem: 'Table does not exist' } }],
  ['firewall', 'fail', 'do not come first', { rules: rules(false) }],
  ['firewall', 'warn', 'does not limit the connections', { rules: rules(true, []) }],
  ['firewall', 'warn', 'legacy', { warnings: '# Warning: iptables-legacy tables present' }],
  ['forward-policy', 'warn', 'ACCEPT', { forwardPolicy: { value: 'ACCEPT' } }],
  ['forward-policy', 'unknown', 'denied', { forwardPolicy: { problem: 'denied' } }],
  ['ip-forwarding', 'fail', 'no network', { forwarding: { value: false } }],
  ['pod-subnets', 'fail', '10.201.7.0/24 (tun0)', routes('tun0', '10.201.7.0/24')],
  ['pod-subnets', 'fail', '10.0.0.0/8 (eth1)', routes('eth1', '10.0.0.0/8')],
  ['pod-subnets', 'warn', 'Docker', routes('br-1234', '10.201.0.0/24')],
  ['pod-subnets', 'ok', 'no route', routes('pw0123456789ab', '10.201.0.16/28')],
  ['pod-subnets', 'ok', 'no route', routes('eth0', '10.202.0.0/16')],
])('reports the check %s as %s: %s', (id, status, words, change) => {
  const found = findingsOf(NETWORK_CHECKS, { ...GOOD, ...change, ...RUNS }).find(
    (each) => each.id === id,
  );
  expect(found).toMatchObject({ status, finding: expect.stringContaining(words) });
});

it('reports fail for a host without iptables if a firewall is required', () => {
  const facts = { ...GOOD, iptables: { problem: 'ENOENT' }, agentRuns: false, required: true };
  expect(findingsOf(NETWORK_CHECKS, facts)[0]?.status).toBe('fail');
});

it('reads the kernel’s routes except the default route', () => {
  const table = [
    'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT',
    'eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0',
    'docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0',
    'eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0',
  ].join('\n');
  expect(routesIn(table)).toEqual([
    { device: 'docker0', range: range('172.17.0.0/16') },
    { device: 'eth0', range: range('192.0.2.0/24') },
  ]);
});
