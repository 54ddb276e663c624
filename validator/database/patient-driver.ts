/** Kysely's driver for SQLite, which waits for locks of other processes without blocking the event loop. */
import {
  type CompiledQuery,
  type DatabaseConnection,
  type QueryResult,
  SqliteDriver,
} from 'kysely';
import { systemClock } from '#shared/runtime/clock.ts';
import { messageOf, OverloadError } from '#shared/runtime/errors.ts';
import { isLocked } from '#shared/runtime/sqlite.ts';

/** Time for which a write waits until another process releases its lock. Other queries wait behind this write. */
const PATIENCE_MS = 2_000;
const RETRY_MS = 5;

/**
 * Writes that find the database locked are repeated for PATIENCE_MS and then reject with OverloadError. Until the lock
 * is released, later writes reject at once, so that reads continue between them. `beforeBegin` runs before each
 * transaction.
 */
export class PatientDriver extends SqliteDriver {
  readonly #beforeBegin: () => void;
  /** The only connection. Kysely prepares each connection object once, so it is the same for all queries. */
  #connection: DatabaseConnection | null = null;
  #isPatient = true;

  constructor(
    config: ConstructorParameters<typeof SqliteDriver>[0],
    beforeBegin: () => void = () => undefined,
  ) {
    super(config);
    this.#beforeBegin = beforeBegin;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    this.#connection ??= this.#patient(await super.acquireConnection());
    return this.#connection;
  }

  #patient(connection: DatabaseConnection): DatabaseConnection {
    return {
      executeQuery: (query) => this.#execute(connection, query),
      streamQuery: (query, chunkSize) => connection.streamQuery(query, chunkSize),
    };
  }

  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    this.#beforeBegin();
    await super.beginTransaction(connection);
  }

  /** Does nothing if SQLite has already undone the transaction, as it does on a full disk. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    try {
      await super.rollbackTransaction(connection);
    } catch (error) {
      if (!messageOf(error).includes(NO_TRANSACTION)) throw error;
    }
  }

  async #execute<R>(connection: DatabaseConnection, query: CompiledQuery): Promise<QueryResult<R>> {
    let untilMs: number | null = null;
    for (;;) {
      try {
        const result = await connection.executeQuery<R>(query);
        // Only statements that write report changed rows.
        if (result.numAffectedRows !== undefined) this.#isPatient = true;
        return result;
      } catch (cause) {
        if (!isLocked(cause)) throw cause;
        untilMs ??= systemClock.monotonicMs() + (this.#isPatient ? PATIENCE_MS : 0);
        if (systemClock.monotonicMs() >= untilMs) {
          this.#isPatient = false;
          throw new OverloadError(LOCKED, { code: 'database_locked', cause });
        }
        await systemClock.sleep(RETRY_MS);
      }
    }
  }
}

/** Part of SQLite's message for a rollback outside a transaction. */
const NO_TRANSACTION = 'no transaction is active';
const LOCKED = 'Another process has locked the database';
