import { expect, it } from 'vitest';
import { routeOf } from './forward.ts';

const OWN = ['172.20.0.2', 'fd00::2'];

it("relays to the pod's loopback, connects to the pod's addresses, and rejects all other targets", () => {
  expect(routeOf({ host: 'LocalHost', port: 80 }, OWN)).toEqual({
    kind: 'relay',
    host: '127.0.0.1',
  });
  expect(routeOf({ host: '::1', port: 80 }, OWN)).toEqual({ kind: 'relay', host: '::1' });
  expect(routeOf({ host: 'fd00::2', port: 80 }, OWN)).toEqual({ kind: 'dial', host: 'fd00::2' });
  const foreign = ['10.0.0.1', '169.254.169.254', '127.0.0.2', 'example.com', '172.20.0.2.', ''];
  for (const host of foreign) expect(routeOf({ host, port: 80 }, OWN)).toBeNull();
  for (const port of [0, -1, 65_536, 1.5]) expect(routeOf({ host: '::1', port }, OWN)).toBeNull();
});
