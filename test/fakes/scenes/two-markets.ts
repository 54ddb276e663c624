/** Two central APIs on one PostgreSQL database, in one process with one clock, with six nodes and a renter. */
import { openCentralDatabase } from '../../../validator/central/platform/database/database.ts';
import { createPostgresDatabase } from './central-database.ts';
import { type AddedNode, createTestMarket } from './market-fixture.ts';

const NODES = 6;

export type TwoMarkets = Awaited<ReturnType<typeof createTwoMarkets>>;

/** The caller must call `close()`. */
export async function createTwoMarkets() {
  const url = await createPostgresDatabase();
  const one = await createTestMarket({ db: await openCentralDatabase(url) });
  const { agents, clock } = one;
  const other = await createTestMarket({ db: await openCentralDatabase(url), agents, clock });
  const nodes: AddedNode[] = [];
  for (let count = 0; count < NODES; count += 1) nodes.push(await one.verifiedNode({ gpus: 1 }));
  return {
    one,
    other,
    nodes,
    account: await one.renter(),
    async close(): Promise<void> {
      await one.close();
      await other.close();
    },
  };
}
