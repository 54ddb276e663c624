import { afterEach, beforeEach, expect, it } from 'vitest';
import { ApiError } from '#shared/runtime/errors.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';

const HOUR_MS = 3_600_000;

let scene: PodScene;
beforeEach(async () => {
  scene = await createPodScene();
});
afterEach(() => scene.close());

/** Newest first. */
const mails = async () =>
  (await scene.market.call('GET', '/_local/outbox', { headers: { host: 'localhost' } })).body.map(
    ({ kind, subject, text }: { kind: string; subject: string; text: string }) => ({
      kind,
      subject,
      text,
    }),
  );
const setMailPreferences = (body: object) =>
  scene.market.call('PUT', '/users/me/notification', { headers: scene.account.key, body });

it("mails once about a failed pod, with the node's message, unless the renter disabled such mails", async () => {
  scene.host.refusal = new ApiError('spec_refused', 'privileged is <not> allowed');
  await scene.rentOne();
  await scene.market.sync();
  await scene.market.sync();
  expect(await mails()).toEqual([
    {
      kind: 'pod-failed',
      subject: 'Your pod mine failed',
      text: expect.stringContaining('privileged is <not> allowed'),
    },
  ]);
  await setMailPreferences({ pod_failed: false });
  await scene.rentOne();
  await scene.market.sync();
  expect(await mails()).toHaveLength(1);
});

it('mails about a scheduled removal an hour before the removal, once per scheduled time', async () => {
  await scene.running({ termination_hours: 2 });
  await scene.later(HOUR_MS - 1);
  expect(await mails()).toEqual([]);
  await scene.later(1);
  await scene.later(45 * 60_000);
  expect(await mails()).toMatchObject([
    { kind: 'scheduled-removal', subject: 'Your pod mine will be removed' },
  ]);
});
