import { expect, it } from 'vitest';
import { resolversIn } from './resolvers.ts';

it('takes the name servers that are not the host’s own loopback', () => {
  const text = `# made by hand
search example
nameserver 127.0.0.53
nameserver 10.0.0.2
 nameserver 192.168.1.1 
nameserver fd00::1
nameserver 10.0.0.2
options edns0`;
  expect(resolversIn(text)).toEqual(['10.0.0.2', '192.168.1.1']);
  expect(resolversIn('')).toEqual([]);
});
