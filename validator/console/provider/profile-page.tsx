import type { ProviderProfile } from '../api/portal.gen.ts';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { Facts } from '../parts/facts.tsx';
import { TextField } from '../parts/fields.tsx';
import { Form, useForm } from '../parts/form.tsx';
import { Page } from '../parts/page.tsx';
import { Panel, QueryPanel } from '../parts/panel.tsx';
import { usePortal, usePortalAction } from '../session/queries.tsx';
import { useSession } from '../session/session.tsx';
import { visitor } from '../session/visitor.tsx';
import { useMessage } from './log-in-forms.tsx';
import { ProviderTokens } from './provider-tokens.tsx';

/** The provider's identity, mails, tokens and password. */
export function ProviderProfilePage() {
  const profile = usePortal('GET /auth/me', {});
  return (
    <Page title="Provider profile">
      <QueryPanel title="Provider" query={profile}>
        {(data) => <Identity profile={data} />}
      </QueryPanel>
      <QueryPanel title="Mails" query={profile}>
        {(data) => <Mails profile={data} />}
      </QueryPanel>
      <ProviderTokens />
      <Panel title="Password">
        <PasswordForm />
      </Panel>
    </Page>
  );
}

function Identity({ profile }: { profile: ProviderProfile }) {
  const { opt_in_status: isOffering } = profile;
  const { logOut } = useSession('portal');
  const change = usePortalAction('POST /providers/opt-in');
  const setOffering = (status: boolean) => change.mutateAsync({ body: { opt_in_status: status } });
  return (
    <>
      <Facts
        facts={[
          ['Hotkey', <code key="hotkey">{profile.miner_hotkey}</code>],
          ['Coldkey', <code key="coldkey">{profile.miner_coldkey ?? 'unknown'}</code>],
          ['Offers', isOffering ? 'All nodes are offered.' : 'No node accepts new rentals.'],
          ['Chat account', profile.discord_connected ? 'linked' : 'not linked'],
        ]}
      />
      <div className="row">
        <ConfirmDialog
          trigger={isOffering ? 'Stop all new rentals' : 'Offer all nodes'}
          title={isOffering ? 'Stop new rentals of all your nodes?' : 'Offer all your nodes again?'}
          action={isOffering ? 'Stop' : 'Offer'}
          onConfirm={() => setOffering(!isOffering)}
        >
          <p>Pods keep running. You can change this at any time.</p>
        </ConfirmDialog>
        <button type="button" onClick={() => void logOut()}>
          Log out of the portal
        </button>
      </div>
    </>
  );
}

function Mails({ profile }: { profile: ProviderProfile }) {
  const setEmail = usePortalAction('POST /auth/set-email');
  const subscribe = usePortalAction('POST /auth/set-machine-request-subscription');
  const mail = useForm({ email: profile.email ?? '' }, (body) => setEmail.mutateAsync({ body }));
  const types = useForm(
    { machine_request_subscription: profile.machine_request_subscription.join(', ') },
    ({ machine_request_subscription: text }) =>
      subscribe.mutateAsync({ body: { machine_request_subscription: namesIn(text) } }),
  );
  return (
    <>
      <Form form={mail} action="Save the address">
        <TextField
          form={mail}
          name="email"
          label="E-mail"
          type="email"
          autoComplete="email"
          hint="For reports about your nodes and for machine requests."
          isRequired
        />
        <p role="status">{setEmail.isSuccess ? 'Saved.' : null}</p>
      </Form>
      <Form form={types} action="Save the subscription">
        <TextField
          form={types}
          name="machine_request_subscription"
          label="Machine requests for these GPUs"
          hint="Separated by commas, such as H100, A100. Empty ends these mails."
        />
        <p role="status">{subscribe.isSuccess ? 'Saved.' : null}</p>
      </Form>
    </>
  );
}

function namesIn(text: string): string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/** A password needs a signature, as a log-in does. */
function PasswordForm() {
  const { session, logOut } = useSession('portal');
  const signed = useMessage();
  const form = useForm({ signature: '', new_password: '' }, async (typed) => {
    const body = { ...typed, miner_hotkey: session?.name ?? '', message: signed.message };
    await visitor.portal('POST /auth/set-password', { body });
    // The server has ended all sessions of the provider.
    await logOut();
  });
  return (
    <Form form={form} action="Set the password" extra={signed.renewal}>
      <p>
        With a password you can log in without the key. Setting it needs a signature and ends all
        your sessions, so you then log in again.
      </p>
      {signed.instructions}
      <TextField form={form} name="signature" label="Signature" hint="128 hex digits." isRequired />
      <TextField
        form={form}
        name="new_password"
        label="New password"
        type="password"
        autoComplete="new-password"
        hint="8 to 128 characters."
        isRequired
      />
    </Form>
  );
}
