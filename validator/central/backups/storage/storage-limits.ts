/** Limits of stored bytes: the reserve of the disk, and a quota for each account. */
import { statfs } from 'node:fs/promises';
import { ResticRefusal } from './restic-protocol.ts';

export type Space = { freeBytes: number; totalBytes: number };

/** Returns the size of the file system of `folder`. */
export async function spaceAt(folder: string): Promise<Space> {
  const { bavail, blocks, bsize } = await statfs(folder);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

/** Minimum free space of the disk: the larger of this share of its size and RESERVE_BYTES. */
const RESERVE_SHARE = 0.05;
const RESERVE_BYTES = 1024 ** 3;

export type DiskReserve = ReturnType<typeof createDiskReserve>;

export function createDiskReserve(spaceOf: () => Promise<Space>) {
  return {
    /** Throws 507 if storing `bytes` would leave less free space than the reserve. */
    async requireFor(bytes: number): Promise<void> {
      const { freeBytes, totalBytes } = await spaceOf();
      if (freeBytes - bytes >= Math.max(RESERVE_BYTES, totalBytes * RESERVE_SHARE)) return;
      throw diskFull();
    },
  };
}

export function diskFull(): ResticRefusal {
  return new ResticRefusal(507, 'The disk for backups is full');
}

/** Assumed size of a block of the file system; each file is charged in whole blocks. */
const BLOCK_BYTES = 4_096;

/** Returns the bytes charged for a file: whole blocks. */
export function chargedBytes(sizeBytes: number): number {
  return Math.max(1, Math.ceil(sizeBytes / BLOCK_BYTES)) * BLOCK_BYTES;
}

type Account = { usedBytes: number; reservedBytes: number; reservations: number };

/** Bytes reserved for one upload. `commit` or `release` ends the reservation once. */
export type Reservation = {
  /** Reserves `bytes` in addition. Throws 507 if the quota is exceeded. */
  reserve(bytes: number): void;
  /** Charges a stored file of this size. */
  commit(sizeBytes: number): void;
  /** Ends the reservation without a charge, because nothing was stored. */
  release(): void;
};

export type AccountQuota = ReturnType<typeof createAccountQuota>;

export type AccountQuotaOptions = {
  limitBytes: number;
  /** Charged bytes on disk of an account's repositories. */
  count(accountId: string): Promise<number>;
};

/**
 * Charged bytes of each account. They are counted on disk at the first use and then maintained in memory, so that a
 * crash cannot make them wrong.
 */
export function createAccountQuota({ limitBytes, count }: AccountQuotaOptions) {
  const accounts = new Map<string, Promise<Account>>();

  function accountOf(accountId: string): Promise<Account> {
    const known = accounts.get(accountId);
    if (known !== undefined) return known;
    const counted = count(accountId).then((usedBytes) => ({
      usedBytes,
      reservedBytes: 0,
      reservations: 0,
    }));
    accounts.set(accountId, counted);
    counted.catch(() => accounts.delete(accountId));
    return counted;
  }

  function reservationIn(account: Account): Reservation {
    let heldBytes = 0;
    account.reservations += 1;
    const end = () => {
      account.reservations -= 1;
      account.reservedBytes -= heldBytes;
    };
    return {
      reserve(bytes) {
        if (account.usedBytes + account.reservedBytes + bytes > limitBytes) {
          throw new ResticRefusal(507, `The account's ${limitBytes} bytes for backups are used up`);
        }
        heldBytes += bytes;
        account.reservedBytes += bytes;
      },
      commit(sizeBytes) {
        end();
        account.usedBytes += chargedBytes(sizeBytes);
      },
      release: end,
    };
  }

  return {
    async open(accountId: string): Promise<Reservation> {
      return reservationIn(await accountOf(accountId));
    },

    /**
     * Subtracts the charged bytes that `remove` returns. Waits for a running count, which could otherwise include these
     * bytes.
     */
    async free(accountId: string, remove: () => Promise<number>): Promise<void> {
      const account = await accounts.get(accountId);
      const bytes = await remove();
      if (account !== undefined) account.usedBytes = Math.max(0, account.usedBytes - bytes);
    },

    /**
     * Drops the counts of accounts without an upload, so that they are counted again: other processes may write to the
     * same folder.
     */
    async forgetIdle(): Promise<void> {
      for (const [accountId, counted] of accounts) {
        const account = await counted.catch(() => null);
        if (account?.reservations === 0) accounts.delete(accountId);
      }
    },
  };
}
