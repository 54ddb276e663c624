import { expect, it } from 'vitest';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { createHostFleet } from './host-fleet.ts';

it('refuses every change of a pod while the host is down, and keeps the pod as it is', async () => {
  const fleet = createHostFleet({ clock: createManualClock(0), wait: async () => undefined });
  const host = fleet.add();
  const podId = await fleet.rent(host);
  const client = fleet.clientOf(host);
  const before = await client.getPod(podId);
  host.isUp = false;
  for (const change of [
    () => client.deletePod(podId),
    () => client.rebootPod(podId, 1),
    () => client.setStopped(podId, true),
  ]) {
    await expect(change()).rejects.toMatchObject({ code: 'upstream_unavailable' });
  }
  host.isUp = true;
  expect(await client.getPod(podId)).toEqual(before);
  expect((await client.setStopped(podId, true)).stopped).toBe(true);
  expect((await client.rebootPod(podId, 1)).phase).toBe('rebooting');
  await client.deletePod(podId);
  await expect(client.getPod(podId)).rejects.toMatchObject({ code: 'pod_not_found' });
});
