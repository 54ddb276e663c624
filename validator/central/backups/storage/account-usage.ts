/**
 * How many bytes each account keeps. Nothing of it is stored: an account is counted on disk when it is first asked
 * for, so that no kill can make the number wrong, and followed in memory from there.
 */
import { ResticRefusal } from './restic-refusal.ts';

/** What the smallest file costs on disk, so that many tiny ones cost what they do. */
const BLOCK_BYTES = 4_096;

/** Bytes of a file as they count: whole blocks. */
export function chargedBytes(sizeBytes: number): number {
  return Math.max(1, Math.ceil(sizeBytes / BLOCK_BYTES)) * BLOCK_BYTES;
}

type Account = { usedBytes: number; reservedBytes: number; rooms: number };

/** Room that one upload has set aside. Ended once, by `keep` or `drop`. */
export type Room = {
  /** Sets aside so much more. Throws 507 when the account has no room left. */
  take(bytes: number): void;
  /** What was stored counts from now on, by its size. */
  keep(sizeBytes: number): void;
  /** Nothing was stored. */
  drop(): void;
};

export type AccountUsage = ReturnType<typeof createAccountUsage>;

export type AccountUsageOptions = {
  limitBytes: number;
  /** Charged bytes on disk of an account's repositories. */
  count(accountId: string): Promise<number>;
};

export function createAccountUsage({ limitBytes, count }: AccountUsageOptions) {
  const accounts = new Map<string, Promise<Account>>();

  function accountOf(accountId: string): Promise<Account> {
    const known = accounts.get(accountId);
    if (known !== undefined) return known;
    const counted = count(accountId).then((usedBytes) => ({
      ...{ usedBytes, reservedBytes: 0, rooms: 0 },
    }));
    accounts.set(accountId, counted);
    counted.catch(() => accounts.delete(accountId));
    return counted;
  }

  function roomIn(account: Account): Room {
    let takenBytes = 0;
    account.rooms += 1;
    const end = () => {
      account.rooms -= 1;
      account.reservedBytes -= takenBytes;
    };
    return {
      take(bytes) {
        if (account.usedBytes + account.reservedBytes + bytes > limitBytes) {
          throw new ResticRefusal(507, `The account's ${limitBytes} bytes for backups are used up`);
        }
        takenBytes += bytes;
        account.reservedBytes += bytes;
      },
      keep(sizeBytes) {
        end();
        account.usedBytes += chargedBytes(sizeBytes);
      },
      drop: end,
    };
  }

  return {
    async room(accountId: string): Promise<Room> {
      return roomIn(await accountOf(accountId));
    },

    /** Subtracts the charged bytes that `remove` says it took away; after a count that is going on, or it would miss them. */
    async free(accountId: string, remove: () => Promise<number>): Promise<void> {
      const account = await accounts.get(accountId);
      const bytes = await remove();
      if (account !== undefined) account.usedBytes = Math.max(0, account.usedBytes - bytes);
    },

    /** Has accounts without an upload counted again when next asked for: others may have the same folder. */
    async forgetIdle(): Promise<void> {
      for (const [accountId, counted] of accounts) {
        const account = await counted.catch(() => null);
        if (account?.rooms === 0) accounts.delete(accountId);
      }
    },
  };
}
