/** Tests that a simulation does not depend on the database. */
import { expect, it } from 'vitest';
import { createPostgresDatabase } from '../../test/fakes/scenes/central-database.ts';
import { simulateDay } from '../../test/fakes/scenes/small-simulation.ts';

it('gives the same run on PostgreSQL as in a temporary file', async () => {
  const inFile = await simulateDay(7);
  const onServer = await simulateDay(7, { database: await createPostgresDatabase() });
  expect(onServer.violation).toBeNull();
  expect(onServer.lines).toEqual(inFile.lines);
  expect(onServer.hash).toBe(inFile.hash);
});
