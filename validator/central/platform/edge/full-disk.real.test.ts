/** A central API on a disk that is full. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { fill, mountSmallDisk } from '../../../../test/fakes/faults/small-disk.ts';
import { createTestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { fillReserve, RESERVE_BYTES } from '../../../database/disk-reserve.ts';
import { openCentralDatabase } from '../database/database.ts';

const DISK_MIB = 64;
const PODS = 4;

it('rejects writes with storage_full, answers reads, and deletes pods with the space of the reserve', async () => {
  const disk = mountSmallDisk(DISK_MIB);
  onTestFinished(disk.close);
  const path = join(disk.folder, 'central.db');
  const reserveBytes = () => statSync(`${path}.reserve`).size;
  const market = await createTestMarket({ db: await openCentralDatabase(path) });
  onTestFinished(market.close);
  const account = await market.renter();
  const pods: string[] = [];
  while (pods.length < PODS) {
    pods.push((await market.rent(account, (await market.verifiedNode()).id)).body.id);
  }
  fillReserve(path);
  expect(reserveBytes()).toBe(RESERVE_BYTES);

  const filler = fill(disk.folder);
  const addSecret = (name: string) =>
    market.call('POST', '/secrets', {
      headers: account.key,
      body: { name, value: 'x'.repeat(30_000) },
    });
  // The journal still has space from earlier transactions.
  let answer = await addSecret('s0');
  for (let index = 1; index < 90 && answer.status !== 503; index += 1) {
    answer = await addSecret(`s${index}`);
  }
  expect(answer).toMatchObject({ status: 503, body: { error: { code: 'storage_full' } } });
  for (const pod of pods) {
    const headers = account.key;
    expect((await market.call('GET', `/pods/${pod}`, { headers })).status).toBe(200);
    const deleted = await market.call('DELETE', `/pods/${pod}`, { headers });
    expect([deleted.status, deleted.body.status]).toEqual([200, 'DELETING']);
  }
  expect(reserveBytes()).toBeLessThan(RESERVE_BYTES);

  filler.empty();
  expect((await addSecret('later')).status).toBe(200);
  fillReserve(path);
  expect(reserveBytes()).toBe(RESERVE_BYTES);
});
