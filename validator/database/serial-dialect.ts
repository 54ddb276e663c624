/**
 * Kysely's dialect with one connection that several users share, whose operations pass through a port. The port decides
 * when a result arrives, so that a program can run the same order of steps on every engine. A user can crash, as a
 * process does, without the others.
 */
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  type QueryResult,
  type TransactionSettings,
} from 'kysely';

/** Runs an operation of the database, and resolves with its result when the caller may continue. */
export type PassOperation = <T>(operation: () => Promise<T>) => Promise<T>;

export type SerialUser = {
  dialect: Dialect;
  /** Opens the database for this user. Only the first user closes the connection, with `destroy()`. */
  open<Tables>(): Kysely<Tables>;
  /** Calls `then` before the result of the operation with this number, counted from now, arrives. */
  afterOperations(count: number, then: () => void): void;
  /** Rolls back the open transaction, as a server does after a crash. No operation of the user returns any more. */
  crash(): Promise<void>;
};

export type { Dialect };

export type SerialDatabase = { addUser(): SerialUser };

/** Wraps a dialect. Users of the connection wait for each other in the order of their requests. */
export function serialDialect(dialect: Dialect, pass: PassOperation): SerialDatabase {
  const inner = dialect.createDriver();
  const line = new Line();
  let begun: Promise<void> | null = null;
  const init = () => {
    begun ??= inner.init();
    return begun;
  };
  let opened: Promise<DatabaseConnection> | null = null;
  /** Only the first call waits for the port, so that later calls take equally long on every engine. */
  const connect = () => {
    opened ??= pass(() => inner.acquireConnection()).catch((error: unknown) => {
      opened = null;
      throw error;
    });
    return opened;
  };
  return {
    addUser() {
      const driver = new SerialDriver({ inner, init, connect, line, pass });
      const own: Dialect = {
        createAdapter: () => dialect.createAdapter(),
        createDriver: () => driver,
        createIntrospector: (db) => dialect.createIntrospector(db),
        createQueryCompiler: () => dialect.createQueryCompiler(),
      };
      return {
        dialect: own,
        open: <Tables>() => new Kysely<Tables>({ dialect: own }),
        afterOperations: (count, then) => driver.afterOperations(count, then),
        crash: () => driver.crash(),
      };
    },
  };
}

/** Users that wait for the connection. */
class Line {
  #last: Promise<void> = Promise.resolve();

  /** Resolves with the function that lets the next user have the connection. */
  async enter(): Promise<() => void> {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    await before;
    return resolve;
  }
}

/** Each operation gets its own promise: a common one would retain all that waits for crashed users. */
const never = () => new Promise<never>(() => undefined);

class SerialConnection implements DatabaseConnection {
  readonly inner: DatabaseConnection;
  readonly #run: PassOperation;

  constructor(inner: DatabaseConnection, run: PassOperation) {
    this.inner = inner;
    this.#run = run;
  }

  executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return this.#run(() => this.inner.executeQuery<R>(query));
  }

  /** The product streams no rows. */
  streamQuery(): never {
    throw new Error('a serial connection streams no rows');
  }
}

/** The connection while a user has it. */
type Held = { connection: DatabaseConnection; leave(): void; isInTransaction: boolean };

type SerialParts = {
  inner: Driver;
  init(): Promise<void>;
  /** Returns the connection, which stays open until the driver is destroyed. */
  connect(): Promise<DatabaseConnection>;
  line: Line;
  pass: PassOperation;
};

class SerialDriver implements Driver {
  /** Initializes the shared driver once. */
  readonly init: () => Promise<void>;
  readonly #inner: Driver;
  readonly #connect: () => Promise<DatabaseConnection>;
  readonly #line: Line;
  readonly #pass: PassOperation;
  /** Kysely prepares each connection object once, so it is the same for all queries. */
  #connection: SerialConnection | null = null;
  #held: Held | null = null;
  #hasCrashed = false;
  #left = Number.POSITIVE_INFINITY;
  #then: () => void = () => undefined;

  constructor({ inner, init, connect, line, pass }: SerialParts) {
    this.init = init;
    this.#inner = inner;
    this.#connect = connect;
    this.#line = line;
    this.#pass = pass;
  }

  afterOperations(count: number, then: () => void): void {
    this.#left = count;
    this.#then = then;
  }

  async crash(): Promise<void> {
    this.#hasCrashed = true;
    const held = this.#held;
    this.#held = null;
    if (held === null) return;
    if (held.isInTransaction) {
      await this.#pass(() => this.#inner.rollbackTransaction(held.connection));
    }
    held.leave();
  }

  /** Runs an operation. Its result is lost if the user crashes meanwhile. */
  async #run<T>(operation: () => Promise<T>): Promise<T> {
    if (this.#hasCrashed) return never();
    try {
      return await this.#pass(operation);
    } finally {
      this.#left -= 1;
      if (this.#left === 0) this.#then();
      if (this.#hasCrashed) await never();
    }
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    if (this.#hasCrashed) return never();
    const leave = await this.#line.enter();
    if (this.#hasCrashed) {
      leave();
      return never();
    }
    try {
      const connection = await this.#connect();
      this.#held = { connection, leave, isInTransaction: false };
      if (this.#hasCrashed) {
        await this.crash();
        return never();
      }
      this.#connection ??= new SerialConnection(connection, (operation) => this.#run(operation));
      return this.#connection;
    } catch (error) {
      leave();
      throw error;
    }
  }

  beginTransaction(connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    return this.#run(async () => {
      await this.#inner.beginTransaction(innerOf(connection), settings);
      this.#setInTransaction(true);
    });
  }

  commitTransaction(connection: DatabaseConnection): Promise<void> {
    return this.#run(async () => {
      await this.#inner.commitTransaction(innerOf(connection));
      this.#setInTransaction(false);
    });
  }

  rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    return this.#run(async () => {
      await this.#inner.rollbackTransaction(innerOf(connection));
      this.#setInTransaction(false);
    });
  }

  async releaseConnection(): Promise<void> {
    const held = this.#held;
    if (held === null) return;
    this.#held = null;
    held.leave();
  }

  async destroy(): Promise<void> {
    await this.#inner.releaseConnection(await this.#connect());
    await this.#inner.destroy();
  }

  #setInTransaction(isInTransaction: boolean): void {
    if (this.#held !== null) this.#held.isInTransaction = isInTransaction;
  }
}

function innerOf(connection: DatabaseConnection): DatabaseConnection {
  return connection instanceof SerialConnection ? connection.inner : connection;
}
