import { type ReactNode, useState } from 'react';
import { nowMs } from '../browser/server-time.ts';
import { connectWallets, type WalletAccount } from '../browser/wallet.ts';
import { CommandBlock } from '../parts/command-block.tsx';
import { FailureNotice } from '../parts/failure-notice.tsx';
import { SelectField, TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { formatDuration } from '../parts/format.ts';
import { Panel } from '../parts/panel.tsx';
import { useNow } from '../parts/time.tsx';
import { useSession } from '../session/session.tsx';
import { visitor } from '../session/visitor.tsx';
import { messageAt, signCommand, validForMs } from './sign-in-message.ts';

type LogInProps = { onDone?: (() => void) | undefined };

/** The three ways to log in to the portal. Used by the log-in page and by the dialog over pages of an expired session. */
export function ProviderLogInForms({ onDone }: LogInProps) {
  return (
    <>
      <Panel title="With a browser wallet">
        <WalletLogIn onDone={onDone} />
      </Panel>
      <Panel title="With a pasted signature">
        <SignatureLogIn onDone={onDone} />
      </Panel>
      <Panel title="With a password">
        <PasswordLogIn onDone={onDone} />
      </Panel>
    </>
  );
}

type Answer = { data: { token: string; miner: { miner_hotkey: string } } };

function useBegin(onDone: LogInProps['onDone']): (answer: Answer) => void {
  const { start } = useSession('portal');
  return ({ data: { token, miner } }) => {
    start({ token, name: miner.miner_hotkey });
    onDone?.();
  };
}

function WalletLogIn({ onDone }: LogInProps) {
  const [accounts, setAccounts] = useState<readonly WalletAccount[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isPending, setIsPending] = useState(false);
  async function connect(): Promise<void> {
    setError(null);
    setIsPending(true);
    await connectWallets().then(setAccounts, setError);
    setIsPending(false);
  }
  if (accounts !== null) return <AccountChoice accounts={accounts} onDone={onDone} />;
  return (
    <>
      <p>
        The extension signs the present time with your hotkey. The first log-in of a hotkey creates
        the provider; it costs nothing.
      </p>
      {error === null ? null : <FailureNotice error={error} />}
      <div>
        <button type="button" aria-disabled={isPending} onClick={() => void connect()}>
          {isPending ? 'Waiting for the wallet …' : 'Connect the wallet'}
        </button>
      </div>
    </>
  );
}

function AccountChoice({ accounts, onDone }: LogInProps & { accounts: readonly WalletAccount[] }) {
  const begin = useBegin(onDone);
  const form = useForm({ account: '0' }, async ({ account: index }) => {
    const account = accounts[Number(index)];
    if (account === undefined) return;
    const message = messageAt(nowMs());
    const signature = await account.sign(message);
    const body = { miner_hotkey: account.address, message, signature };
    begin(await visitor.portal('POST /auth/login-flexible', { body }));
  });
  return (
    <Form form={form} action="Sign and log in">
      <SelectField
        form={form}
        name="account"
        label="Account"
        isRequired
        options={accounts.map(({ wallet, address, name }, index) => ({
          value: String(index),
          label: `${name} (${address.slice(0, 8)}…, ${wallet})`,
        }))}
      />
    </Form>
  );
}

function SignatureLogIn({ onDone }: LogInProps) {
  const begin = useBegin(onDone);
  const signed = useMessage();
  const form = useForm({ miner_hotkey: '', signature: '' }, async (typed) => {
    const body = { ...typed, message: signed.message };
    begin(await visitor.portal('POST /auth/login-flexible', { body }));
  });
  return (
    <Form form={form} action="Log in with the signature" extra={signed.renewal}>
      {signed.instructions}
      <TextField
        form={form}
        name="miner_hotkey"
        label="Hotkey"
        hint="The address of your key (ss58), which the command prints first."
        autoComplete="username"
        isRequired
      />
      <TextField
        form={form}
        name="signature"
        label="Signature"
        hint="128 hex digits. Each signature can be used once."
        isRequired
      />
    </Form>
  );
}

/** A message to sign, with the command that signs it. It stays until its time is over or the user renews it. */
export function useMessage(): { message: string; instructions: ReactNode; renewal: ReactNode } {
  const [message, setMessage] = useState(() => messageAt(nowMs()));
  const leftMs = validForMs(message, useNow());
  const renew = () => setMessage(messageAt(nowMs()));
  return {
    message,
    instructions: (
      <>
        <CommandBlock label="Message to sign (sr25519), without a line break" command={message} />
        <CommandBlock
          label="This command signs it with the provider’s key on your computer"
          command={signCommand(message)}
        />
        <p className={leftMs === 0 ? 'warn-text' : 'hint'}>
          {leftMs === 0
            ? 'The time of this message is over. Make a new message and sign it.'
            : `The message is valid for ${formatDuration(leftMs)}.`}
        </p>
      </>
    ),
    renewal: (
      <button type="button" onClick={renew}>
        New message
      </button>
    ),
  };
}

function PasswordLogIn({ onDone }: LogInProps) {
  const begin = useBegin(onDone);
  const form = useForm({ miner_hotkey: '', password: '' }, async (body) =>
    begin(await visitor.portal('POST /auth/login', { body })),
  );
  return (
    <Form form={form} action="Log in with the password">
      <TextField
        form={form}
        name="miner_hotkey"
        label="Hotkey"
        autoComplete="username"
        isRequired
      />
      <TextField
        form={form}
        name="password"
        label="Password"
        type="password"
        autoComplete="current-password"
        hint="You can set a password in the profile, with a signature."
        isRequired
      />
    </Form>
  );
}
