/**
 * Starts a PostgreSQL server for this run, with one migrated database to clone. After the tests, or when the run is
 * interrupted, the server is stopped and its folder deleted.
 */
import type { TestProject } from 'vitest/node';
import { openCentralDatabase } from '../validator/central/platform/database/database.ts';
import { createDatabaseIn, startPostgresServer } from './fakes/external/postgres-server.ts';
import { TEMPLATE_DATABASE } from './fakes/scenes/central-database.ts';

/** Starts the server and provides its folder; the returned function is the teardown. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgresServer({ keepsCommits: false });
  process.once('exit', server.removeNow);
  try {
    const url = await createDatabaseIn(server.folder, TEMPLATE_DATABASE);
    await (await openCentralDatabase(url)).destroy();
  } catch (error) {
    await server.remove();
    throw error;
  }
  project.provide('centralDatabase', server.folder);
  return server.remove;
}
