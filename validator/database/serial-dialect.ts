/**
 * Kysely's dialect with one connection, whose operations pass through a port. The port decides when a result arrives, so
 * that a program can run the same order of steps on every engine.
 */
import type {
  CompiledQuery,
  DatabaseConnection,
  Dialect,
  Driver,
  QueryResult,
  TransactionSettings,
} from 'kysely';

/** Runs an operation of the database, and resolves with its result when the caller may continue. */
export type PassOperation = <T>(operation: () => Promise<T>) => Promise<T>;

/** Wraps a dialect. Users of the connection wait for each other in the order of their requests. */
export function serialDialect(dialect: Dialect, pass: PassOperation): Dialect {
  return {
    createAdapter: () => dialect.createAdapter(),
    createDriver: () => new SerialDriver(dialect.createDriver(), pass),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  };
}

class SerialConnection implements DatabaseConnection {
  readonly inner: DatabaseConnection;
  readonly #pass: PassOperation;

  constructor(inner: DatabaseConnection, pass: PassOperation) {
    this.inner = inner;
    this.#pass = pass;
  }

  executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return this.#pass(() => this.inner.executeQuery<R>(query));
  }

  /** The product streams no rows. */
  streamQuery(): never {
    throw new Error('a serial connection streams no rows');
  }
}

class SerialDriver implements Driver {
  readonly #inner: Driver;
  readonly #pass: PassOperation;
  /** Resolves when the last user that waits has released the connection. */
  #released: Promise<void> = Promise.resolve();
  #release: () => void = () => undefined;

  constructor(inner: Driver, pass: PassOperation) {
    this.#inner = inner;
    this.#pass = pass;
  }

  init(): Promise<void> {
    return this.#inner.init();
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    const before = this.#released;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#released = promise;
    await before;
    this.#release = resolve;
    try {
      const inner = await this.#pass(() => this.#inner.acquireConnection());
      return new SerialConnection(inner, this.#pass);
    } catch (error) {
      resolve();
      throw error;
    }
  }

  beginTransaction(connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    return this.#pass(() => this.#inner.beginTransaction(innerOf(connection), settings));
  }

  commitTransaction(connection: DatabaseConnection): Promise<void> {
    return this.#pass(() => this.#inner.commitTransaction(innerOf(connection)));
  }

  rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    return this.#pass(() => this.#inner.rollbackTransaction(innerOf(connection)));
  }

  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    await this.#inner.releaseConnection(innerOf(connection));
    this.#release();
  }

  destroy(): Promise<void> {
    return this.#inner.destroy();
  }
}

function innerOf(connection: DatabaseConnection): DatabaseConnection {
  return connection instanceof SerialConnection ? connection.inner : connection;
}
