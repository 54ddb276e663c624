import { expect, it } from 'vitest';
import { createTurnLimit } from './webhook.job.ts';

it('limits turns in total, per owner, and to one per id', async () => {
  const turns = createTurnLimit({ most: 3, mostOfOwner: 2 });
  const gate = Promise.withResolvers<void>();
  const begin = (id: string, owner: string) => turns.begin({ id, owner }, () => gate.promise);
  expect([begin('1', 'a'), begin('1', 'a'), begin('2', 'a'), begin('3', 'a')]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  expect([turns.isFull(), begin('4', 'b'), turns.isFull(), begin('5', 'c')]).toEqual([
    false,
    true,
    true,
    false,
  ]);
  gate.resolve();
  await turns.ended();
  expect([turns.isFull(), begin('1', 'a')]).toEqual([false, true]);
});
