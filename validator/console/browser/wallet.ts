/** Wallet extensions of the browser that offer the interface `injectedWeb3`, as those of Polkadot do. */
import { ApiFailure } from '../api/failure.ts';

export type WalletAccount = {
  /** Name of the extension. */
  wallet: string;
  /** ss58 address. */
  address: string;
  name: string;
  /** Rejects with an `ApiFailure` if the user or the extension refuses. Returns hex. */
  sign(text: string): Promise<string>;
};

type Injected = {
  accounts: { get(): Promise<readonly { address: string; name?: string; type?: string }[]> };
  signer: {
    signRaw?(payload: {
      address: string;
      data: string;
      type: 'bytes';
    }): Promise<{ signature: string }>;
  };
};
type Extension = { enable?(origin: string): Promise<Injected> };
type Extensions = { injectedWeb3?: Record<string, Extension> };

/**
 * Requests the accounts of all extensions, which ask the user for permission. Rejects with an `ApiFailure` if there is
 * no extension, or no account that can sign a log-in.
 */
export async function connectWallets(): Promise<WalletAccount[]> {
  const { injectedWeb3: extensions = {} } = window as Window & Extensions;
  if (Object.keys(extensions).length === 0) {
    throw walletFailure(
      'wallet_missing',
      'This browser has no wallet extension',
      'Install an extension such as Polkadot{.js}, Talisman or SubWallet and load the page again, or paste a signature.',
    );
  }
  const accounts = await Promise.all(
    Object.entries(extensions).map(([name, extension]) => accountsOf(name, extension)),
  );
  if (accounts.flat().length > 0) return accounts.flat();
  throw walletFailure(
    'wallet_without_account',
    'The wallet has no account of type sr25519 that this page may use',
    'Allow this page in the settings of the extension, or add the account there.',
  );
}

async function accountsOf(wallet: string, extension: Extension): Promise<WalletAccount[]> {
  const injected = await extension.enable?.('Podwright').catch((error: unknown) => {
    throw refused(error);
  });
  if (injected === undefined) return [];
  const accounts = await injected.accounts.get();
  return accounts
    .filter(({ type }) => type === undefined || type === 'sr25519')
    .map(({ address, name }) => ({
      wallet,
      address,
      name: name ?? address,
      sign: (text) => signWith(injected, address, text),
    }));
}

async function signWith({ signer }: Injected, address: string, text: string): Promise<string> {
  const bytes = new TextEncoder().encode(text);
  const data = `0x${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
  try {
    const signed = await signer.signRaw?.({ address, data, type: 'bytes' });
    if (signed !== undefined) return signed.signature;
  } catch (error) {
    throw refused(error);
  }
  throw walletFailure(
    'wallet_cannot_sign',
    'This account cannot sign messages',
    'Choose another account, or paste a signature.',
  );
}

function refused(error: unknown): ApiFailure {
  const reason = error instanceof Error ? ` The wallet answered: ${error.message}` : '';
  return walletFailure(
    'wallet_refused',
    'The wallet did not allow the request',
    `Confirm the request in the window of the wallet.${reason}`,
  );
}

function walletFailure(code: string, message: string, hint: string): ApiFailure {
  return new ApiFailure(message, { status: 0, code, hint, requestId: null, problems: [] });
}
