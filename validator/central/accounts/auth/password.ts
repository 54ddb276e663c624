/** Hashes passwords with argon2id, encoded as PHC strings, with bounded concurrency. */
import { argon2, timingSafeEqual } from 'node:crypto';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';

const SALT_BYTES = 16;
const HASH_BYTES = 32;
/**
 * Maximum number of concurrent hashings. Each takes 19 MiB and a thread; more would starve other work of the process.
 */
const MAX_AT_ONCE = 2;
const MAX_WAITING = 100;

/** Argon2 parameters: memory in KiB, passes, lanes. */
export type PasswordCost = { memory: number; passes: number; parallelism: number };

const DEFAULT_COST: PasswordCost = { memory: 19_456, passes: 2, parallelism: 1 };
const PHC = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

export type Passwords = ReturnType<typeof createPasswords>;

/** Both functions reject with `rate_limited` if too many hashings wait. `cost` applies to new hashes. */
export function createPasswords(deps: { random: Random; cost?: PasswordCost | undefined }) {
  const { random, cost = DEFAULT_COST } = deps;
  const limit = createConcurrencyLimit();
  /** Hash that is compared in log-ins with unknown addresses, so that such log-ins take as long as others. */
  const dummyHash = encode(cost, random.bytes(SALT_BYTES), random.bytes(HASH_BYTES));

  return {
    async hash(password: string): Promise<string> {
      const salt = random.bytes(SALT_BYTES);
      return encode(cost, salt, await limit.run(() => derive(password, salt, cost)));
    },

    /** `stored` is null for an unknown account; the call then takes as long as any comparison and returns false. */
    async matches(password: string, stored: string | null): Promise<boolean> {
      const { parameters, salt, hash } = decode(stored ?? dummyHash);
      const derived = await limit.run(() => derive(password, salt, parameters));
      return timingSafeEqual(derived, hash) && stored !== null;
    },
  };
}

function derive(password: string, salt: Uint8Array, parameters: PasswordCost): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const all = { ...parameters, message: password, nonce: salt, tagLength: HASH_BYTES };
    argon2('argon2id', all, (error, derived) =>
      error === null ? resolve(derived) : reject(error),
    );
  });
}

function encode({ memory, passes, parallelism }: PasswordCost, salt: Uint8Array, hash: Uint8Array) {
  const [saltText, hashText] = [salt, hash].map((bytes) =>
    Buffer.from(bytes).toString('base64').replace(/=+$/, ''),
  );
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${saltText}$${hashText}`;
}

function decode(phc: string): { parameters: PasswordCost; salt: Uint8Array; hash: Uint8Array } {
  const [, memory, passes, parallelism, salt, hash] = PHC.exec(phc) ?? [];
  if (salt === undefined || hash === undefined) throw new Error('not an argon2id PHC string');
  return {
    parameters: {
      memory: Number(memory),
      passes: Number(passes),
      parallelism: Number(parallelism),
    },
    salt: Buffer.from(salt, 'base64'),
    hash: Buffer.from(hash, 'base64'),
  };
}

/** Runs at most MAX_AT_ONCE calls at a time, queues at most MAX_WAITING, and rejects further calls. */
function createConcurrencyLimit() {
  const waiting: (() => void)[] = [];
  let running = 0;

  async function acquire(): Promise<void> {
    if (running < MAX_AT_ONCE) {
      running += 1;
      return;
    }
    if (waiting.length >= MAX_WAITING) {
      throw new ApiError('rate_limited', 'Too many log-ins at once', {
        headers: { 'Retry-After': '60' },
      });
    }
    await new Promise<void>((resolve) => waiting.push(resolve));
  }

  /** Passes the slot directly to the next waiting call, so `running` does not change. */
  function release(): void {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }

  return {
    async run<T>(work: () => Promise<T>): Promise<T> {
      await acquire();
      try {
        return await work();
      } finally {
        release();
      }
    },
  };
}
