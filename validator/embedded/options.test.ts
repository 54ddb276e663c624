import { expect, it } from 'vitest';
import { metricsBlocks, parseStartOptions } from './options.ts';

it('has the documented defaults', () => {
  expect(parseStartOptions([])).toEqual({
    problems: [],
    options: {
      home: './var',
      host: '127.0.0.1',
      port: 8000,
      'validator-port': 8090,
      agents: 2,
      'agent-port': 8080,
      'pod-ports': 20_000,
      'metrics-port': 8100,
      'keep-pods': false,
      fresh: false,
      simulate: false,
      providers: 20,
      renters: 50,
      seed: 1,
      help: false,
      version: false,
    },
  });
});

it.each([
  [['--port', '70000'], /--port "70000": must be a whole number from 1 to 65535/],
  [['--port', 'abc'], /--port "abc": must be a whole number from 1 to 65535/],
  [['--port', '8081'], /--port and --agent-port both use port 8081/],
  [['--validator-port', '20399'], /--validator-port and --pod-ports both use port 20399/],
  [['--agent-port', '65535'], /--agent-port reaches port 65536, .+ 1 lower/],
  [['--agents', '0'], /--agents "0"/],
  [['--providers', '5'], /--providers needs --simulate/],
  [['--simulate', '--agents', '3'], /--agents has no effect with --simulate: remove it/],
  [['--simulate', '--renters', '5001'], /--renters "5001": must be a whole number from 0 to 5000/],
  [['--nonsense'], /nonsense/],
  [['stray'], /stray/],
])('rejects %j and names the option', (argv, message) => {
  const { problems } = parseStartOptions(argv);
  expect(problems).toEqual([expect.stringMatching(message)]);
});

it('reports all problems at once, each with the remedy', () => {
  const argv = ['--prot', '1', '--home', '--agents', '9', '--port', '8090', '--fresh=yes'];
  expect(parseStartOptions(argv).problems).toEqual([
    'unknown option --prot: did you mean --port?',
    '--home needs a value: write --home=VALUE',
    '--fresh takes no value: write --fresh',
    '--agents "9": must be a whole number from 1 to 8',
    '--port and --validator-port both use port 8090: change one',
  ]);
});

it('uses only one port with --simulate', () => {
  expect(parseStartOptions(['--simulate', '--port', '8090']).problems).toEqual([]);
});

it('prefers the given ports for metrics, and skips blocks with ports of other options', () => {
  const blocksOf = (...argv: string[]) => metricsBlocks(parseStartOptions(argv).options);
  expect(blocksOf().slice(0, 2)).toEqual([8100, 8110]);
  const used = ['--port', '9115', '--validator-port', '9139', '--agent-port', '9145'];
  expect(blocksOf('--metrics-port', '9110', ...used).slice(0, 2)).toEqual([9120, 9150]);
  expect(blocksOf('--metrics-port', '65530')).toEqual([]);
  expect(blocksOf('--metrics-port', '65526')).toEqual([65_526]);
});
