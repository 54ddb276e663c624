/** A funded renter and nodes in a database, which real processes of the central API then serve. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { openCentralDatabase } from '../../../validator/central/platform/database/database.ts';
import { type AgentRequest, startFakeGateway } from '../agents/fake-gateway.ts';
import { createManualClock } from '../manual-clock.ts';
import { writeCentralKeys } from './central-fixture.ts';
import { createTestMarket, type TestMarket } from './market-fixture.ts';
import { setAvailable } from './wallet.ts';

/** The renter's balance. */
export const BALANCE_UUSD = 1_000_000_000;

export type ServedMarket<Nodes> = Awaited<ReturnType<typeof createServedMarket<Nodes>>>;

/**
 * Creates the market. `databaseIn` returns the database's address; it may create the database in the folder, which
 * `close` removes. The caller must end the processes before it calls `close`.
 */
export async function createServedMarket<Nodes>(
  databaseIn: (folder: string) => string | Promise<string>,
  addNodes: (market: TestMarket) => Promise<Nodes>,
  onRequest?: (request: AgentRequest) => void,
) {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-served-'));
  const gateway = await startFakeGateway(onRequest);
  const removeAll = async () => {
    await gateway.close();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const address = await databaseIn(folder);
    const clock = createManualClock(systemClock.now() - 60_000);
    const market = await createTestMarket({ db: await openCentralDatabase(address), clock });
    const nodes = await addNodes(market);
    const account = await market.renter();
    await setAvailable(market.ports.db, BALANCE_UUSD);
    await market.close();
    const db = await openCentralDatabase(address);
    writeCentralKeys(folder);
    return {
      gateway,
      nodes,
      account,
      db,
      /** Environment variables of a central API that serves the market. */
      environment: {
        CENTRAL_DATABASE: address,
        CENTRAL_HOME: folder,
        CENTRAL_GATEWAY_URL: gateway.url,
        CENTRAL_GATEWAY_HOTKEY: market.validator.hotkey,
      },
      async close(): Promise<void> {
        await db.destroy();
        await removeAll();
      },
    };
  } catch (error) {
    await removeAll();
    throw error;
  }
}
