import { expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { validatorKey } from '../test/fixtures/update-manifest.ts';
import { CONFIG_HELP, dockerSocketOf, isSecure, readConfig, updateOf } from './config.ts';

const ID = '00000000-0000-4000-8000-000000000000';
const HOTKEY = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY';
const OTHER_HOTKEY = validatorKey.hotkey;
const read = (change: Record<string, string> = {}) =>
  readConfig({ AGENT_EXECUTOR_ID: ID, HOME: '/root', ...change });

it('has defaults for everything except the executor id', () => {
  expect(read()).toMatchObject({
    AGENT_HOME: '/var/lib/podwright',
    AGENT_PORT: 8080,
    AGENT_PORT_RANGE: { first: 20_000, last: 20_999 },
    AGENT_TRUSTED_KEYS: [],
    AGENT_GPU: 'auto',
    AGENT_EXIT_WITH_PARENT: false,
  });
  expect(() => readConfig({})).toThrow('AGENT_EXECUTOR_ID');
});

it('reads ranges, keys and simulated GPUs', () => {
  const config = read({
    AGENT_PORT_RANGE: '30000-30009',
    AGENT_TRUSTED_KEYS: `${HOTKEY}=validator-control+validator-read`,
    AGENT_ROOT_KEYS: `2/${HOTKEY}, ${OTHER_HOTKEY}`,
    AGENT_GPU_MONITORS: 'dcgm-exporter, nv-hostengine-long',
    AGENT_SIMULATED_GPUS: 'NVIDIA H100 80GB HBM3*2, NVIDIA L40S',
  });
  expect(config.AGENT_PORT_RANGE).toEqual({ first: 30_000, last: 30_009 });
  const roles = ['validator-control', 'validator-read'];
  expect(config.AGENT_TRUSTED_KEYS).toEqual([{ hotkey: HOTKEY, roles }]);
  expect(config.AGENT_ROOT_KEYS).toEqual({ threshold: 2, keys: [HOTKEY, OTHER_HOTKEY] });
  const h100 = 'NVIDIA H100 80GB HBM3';
  expect(config.AGENT_SIMULATED_GPUS).toEqual([h100, h100, 'NVIDIA L40S']);
  expect(config.AGENT_GPU_MONITORS).toEqual(['dcgm-exporter', 'nv-hostengine-l']);
});

it.each([
  ['AGENT_PORT_RANGE', '20999-20000'],
  ['AGENT_PORT_RANGE', '80-90'],
  ['AGENT_PORT', '70000'],
  ['AGENT_TRUSTED_KEYS', `${HOTKEY}=root`],
  ['AGENT_TRUSTED_KEYS', 'x=validator-read'],
  ['AGENT_ROOT_KEYS', '2'],
  ['AGENT_ROOT_KEYS', `1/${HOTKEY},${OTHER_HOTKEY}`],
  ['AGENT_ROOT_KEYS', `2/${HOTKEY},${HOTKEY}`],
  ['AGENT_ROOT_KEYS', `2/${HOTKEY},x`],
  ['AGENT_SIMULATED_GPUS', 'X*99'],
  ['AGENT_GPU_MONITORS', 'dcgm-exporter,/bin/sh'],
  ['AGENT_GPU', 'amd'],
  ['AGENT_HOME', 'here'],
  ['AGENT_POD_SUBNETS', '10.201.0.1/16'],
  ['AGENT_POD_SUBNETS', '10.0.0.0/29'],
  ['AGENT_POD_SUBNETS', '10.0.0/16'],
  ['AGENT_EGRESS_ALLOW', '10.0.0.0/8,everything'],
  ['AGENT_EGRESS_ALLOW', '0.0.0.0/0'],
  ['AGENT_EGRESS_ALLOW', '10.0.0.0/8,169.254.169.254/32'],
  ['AGENT_EGRESS_ALLOW', '172.0.0.0/8'],
  ['AGENT_POD_SUBNETS', '8.8.0.0/16'],
  ['AGENT_REQUIRE_FIREWALL', 'perhaps'],
  ['AGENT_METRICS_LISTEN', '127.0.0.1:8080'],
  ['AGENT_METRICS_LISTEN', '127.0.0.1:20010'],
  ['AGENT_PORT', '20999'],
])('rejects %s=%s with an error that names the variable', (name, value) => {
  expect(() => read({ [name]: value })).toThrow(ConfigError);
  expect(() => read({ [name]: value })).toThrow(name);
});

it('reads the ranges of pod subnets and reachable networks', () => {
  expect(read().AGENT_POD_SUBNETS).toEqual({ base: 0x0a_c9_00_00, prefix: 16 });
  const allow = read({ AGENT_EGRESS_ALLOW: '10.20.0.0/24, 192.168.7.9/32' }).AGENT_EGRESS_ALLOW;
  expect(allow).toEqual(['10.20.0.0/24', '192.168.7.9/32']);
});

it('finds the engine’s socket', () => {
  expect(dockerSocketOf(read(), undefined)).toBe('/var/run/docker.sock');
  expect(dockerSocketOf(read(), 'unix:///run/other.sock')).toBe('/run/other.sock');
  const own = read({ AGENT_DOCKER_SOCKET: '/run/mine.sock' });
  expect(dockerSocketOf(own, 'unix:///run/other.sock')).toBe('/run/mine.sock');
});

it('rejects a remote engine unless a socket is set', () => {
  const remote = { DOCKER_HOST: 'tcp://10.1.2.3:2375' };
  expect(() => read(remote)).toThrow('DOCKER_HOST ("tcp://10.1.2.3:2375"): only unix:///');
  expect(() => read({ DOCKER_HOST: 'unix://' })).toThrow(ConfigError);
  const own = read({ ...remote, AGENT_DOCKER_SOCKET: '/run/mine.sock' });
  expect(dockerSocketOf(own, remote.DOCKER_HOST)).toBe('/run/mine.sock');
});

it('describes every variable in the help', () => {
  for (const name of Object.keys(read())) expect(CONFIG_HELP).toContain(name);
});

it.each<[Record<string, string>, boolean]>([
  [{}, true],
  [{ AGENT_HOST: '10.1.2.3' }, true],
  [{ AGENT_HOST: '127.0.0.1' }, true],
  [{ AGENT_HOST: '127.0.0.1', AGENT_TLS: 'auto' }, true],
  [{ AGENT_HOST: '127.0.0.1', AGENT_TLS: 'on' }, true],
  [{ AGENT_HOST: '127.0.0.1', AGENT_TLS: 'off' }, false],
  [{ AGENT_TLS: 'off', AGENT_TLS_OFF_EXPOSED: 'true' }, false],
])('the listener uses TLS with %j: %s', (change, secure) => {
  expect(isSecure(read(change))).toBe(secure);
});

it.each([
  ['127.0.0.1:9100', { host: '127.0.0.1', port: 9_100 }],
  ['[::1]:9100', { host: '::1', port: 9_100 }],
])('parses the metrics listener’s address %s', (text, address) => {
  expect(read({ AGENT_METRICS_LISTEN: text }).AGENT_METRICS_LISTEN).toEqual(address);
});

const SOURCE = { AGENT_UPDATE_URL: 'https://a.example/d', AGENT_UPDATE_IMAGE: 'a.example/agent' };

it('selects the configured container or the folder of releases as the target of updates', () => {
  const placeOf = (change: Record<string, string>) => updateOf(read(change))?.place ?? null;
  expect(placeOf({ AGENT_UPDATE_TREE: '/opt/podwright' })).toBeNull();
  const tree = { kind: 'tree', folder: '/opt/podwright' };
  expect(placeOf({ ...SOURCE, AGENT_UPDATE_TREE: '/opt/podwright' })).toEqual(tree);
  const container = { kind: 'container', name: 'a' };
  expect(placeOf({ ...SOURCE, AGENT_UPDATE_CONTAINER: 'a' })).toEqual(container);
});

it.each<[Record<string, string>, string]>([
  [{ AGENT_TLS: 'off' }, 'AGENT_TLS'],
  [{ AGENT_METRICS_LISTEN: '9100' }, 'AGENT_METRICS_LISTEN'],
  [{ AGENT_METRICS_LISTEN: '::1:9100' }, 'AGENT_METRICS_LISTEN'],
  [{ AGENT_METRICS_LISTEN: '127.0.0.1:99999' }, 'AGENT_METRICS_LISTEN'],
  [{ AGENT_TLS: 'maybe' }, 'AGENT_TLS'],
  [{ AGENT_TLS_CERT: '/a.pem' }, 'AGENT_TLS_KEY'],
  [{ AGENT_TLS_KEY: '/a.pem' }, 'AGENT_TLS_CERT'],
  [{ AGENT_TLS_CERT: 'a.pem', AGENT_TLS_KEY: '/a.pem' }, 'AGENT_TLS_CERT'],
  [{ ...SOURCE }, 'AGENT_UPDATE_CONTAINER'],
  [
    { AGENT_UPDATE_TREE: '/opt/podwright', AGENT_UPDATE_URL: SOURCE.AGENT_UPDATE_URL },
    'AGENT_UPDATE_IMAGE',
  ],
  [{ ...SOURCE, AGENT_UPDATE_TREE: '/a', AGENT_UPDATE_CONTAINER: 'a' }, 'AGENT_UPDATE_CONTAINER'],
])('rejects %j with an error that names %s', (change, name) => {
  const problems = (() => {
    try {
      read(change);
    } catch (error) {
      return error instanceof ConfigError ? error.problems.map((problem) => problem.name) : error;
    }
    return 'accepted';
  })();
  expect(problems).toEqual([name]);
});
