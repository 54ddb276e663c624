/** The OpenAPI descriptions of the central API, from an instance that never listens. */
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import { createTestCentral } from '../fakes/scenes/central-fixture.ts';

/** Paths of the descriptions. */
export const DOCUMENTS = ['/api/openapi.json', '/portal/openapi.json'] as const;

/** Returns the descriptions in the order of DOCUMENTS. */
export async function readDocuments(): Promise<unknown[]> {
  const central = await createTestCentral({ db: await openCentralDatabase(':memory:') });
  try {
    const answers = await Promise.all(DOCUMENTS.map((url) => central.server.inject({ url })));
    return answers.map((answer) => answer.json());
  } finally {
    await central.close();
  }
}
