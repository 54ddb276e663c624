import { expect, it } from 'vitest';
import { parseStartOptions } from './options.ts';

it('has the documented defaults', () => {
  expect(parseStartOptions([])).toEqual({
    home: './var',
    host: '127.0.0.1',
    port: 8000,
    'validator-port': 8090,
    agents: 2,
    'agent-port': 8080,
    'pod-ports': 20_000,
    'keep-pods': false,
    fresh: false,
    help: false,
  });
});

it.each([
  [['--port', '70000'], /--port "70000": must be a whole number from 1 to 65535/],
  [['--port', 'abc'], /--port "abc": must be a whole number from 1 to 65535/],
  [['--port', '8081'], /--port and --agent-port both use port 8081/],
  [['--validator-port', '20399'], /--validator-port and --pod-ports both use port 20399/],
  [['--agent-port', '65535'], /--agent-port reaches port 65536/],
  [['--agents', '0'], /--agents "0"/],
  [['--nonsense'], /nonsense/],
  [['stray'], /stray/],
])('rejects %j and names the option', (argv, message) => {
  expect(() => parseStartOptions(argv)).toThrow(message);
});
