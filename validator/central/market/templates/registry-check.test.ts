import { expect, it } from 'vitest';
import { createManualClock } from '../../../../test/fakes/manual-clock.ts';
import { createRegistryCheck } from './registry-check.ts';

const ADDRESSES: Record<string, string[]> = {
  'registry.example.com': ['203.0.113.7'],
  'rebound.example.com': ['203.0.113.7', '127.0.0.1'],
  'six.example.com': ['::1'],
};

function check(image: string | undefined, allowsLoopback = false): Promise<void> {
  const clock = createManualClock();
  const resolve = async (name: string) => {
    const found = ADDRESSES[name];
    if (found === undefined) throw new Error(`${name} is unknown`);
    return found;
  };
  return createRegistryCheck({ clock, allowsLoopback, resolve })(image);
}

it.each([
  ...['localhost/x', 'localhost:5000/x', 'LOCALHOST/x', 'box.localhost:5000/x'],
  ...['127.0.0.1:5000/x', '127.1:5000/x', '0x7f000001.:5000/x', '0.0.0.0:5000/x'],
  ...['rebound.example.com/x:1', 'six.example.com:443/x'],
])('rejects %s unless the central API listens on loopback', async (image) => {
  await expect(check(image)).rejects.toMatchObject({ code: 'template_invalid', status: 400 });
  await expect(check(image, true)).resolves.toBeUndefined();
});

it.each(['ubuntu', 'user/image', 'registry.example.com/x', 'unknown.example.com/x', undefined])(
  'accepts %s',
  async (image) => {
    await expect(check(image)).resolves.toBeUndefined();
  },
);

it('does not wait for a name server longer than two seconds', async () => {
  const clock = createManualClock();
  const resolve = () => new Promise<never>(() => undefined);
  const checking = createRegistryCheck({ clock, allowsLoopback: false, resolve })(
    'a.example.com/x',
  );
  await clock.advance(2_000);
  await expect(checking).resolves.toBeUndefined();
});
