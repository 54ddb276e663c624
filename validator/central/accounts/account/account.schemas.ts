/** Wire schemas of accounts. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { AccountProof } from '#shared/signing/account-proof.ts';
import { TemplateResponse } from '../../market/templates/template.schemas.ts';
import { SOURCES } from '../../platform/identity.ts';
import { CREATED_AT, SUCCESS, UPDATED_AT } from '../../platform/openapi/field-texts.ts';
import {
  displayName,
  EmailAddress,
  MAX_EMAIL_CHARS,
  NaiveTime,
  optional,
  Usd,
  Uuid,
} from '../../platform/wire.ts';

/** Limits the cost of hashing. */
const MAX_PASSWORD_CHARS = 128;
const MIN_PASSWORD_CHARS = 8;

const NewPassword = z.string().min(MIN_PASSWORD_CHARS).max(MAX_PASSWORD_CHARS);
const GivenPassword = z.string().max(MAX_PASSWORD_CHARS);
const AccountName = displayName(100);

/** Payment method for referral shares. */
const ReferralPayoutMethod = z.enum(['balance', 'stripe_connect', 'crypto']);
export type ReferralPayoutMethod = z.output<typeof ReferralPayoutMethod>;

export const User = z
  .object(
    described(
      {
        id: z.uuid(),
        name: z.string(),
        email: z.string(),
        balance: Usd,
        unposted: Usd,
        held: Usd,
        available: Usd,
        burn_per_hour: Usd,
        runs_out_at: NaiveTime.nullable(),
        stripe_customer_id: z.string().nullable(),
        stripe_connect_account_id: z.string().nullable(),
        stripe_onboarding_completed: z.boolean(),
        referral_payout_method: ReferralPayoutMethod,
        pending_referral_balance: Usd,
        email_verified: z.boolean(),
        discord_id: z.string().nullable(),
        disable_incoming_connections: z.boolean(),
        avatar_url: z.string().nullable(),
        company_name: z.string().nullable(),
        validator_hotkey: z.string().nullable(),
        admin: z.boolean(),
        internal_member: z.boolean(),
        referral_code: z.string(),
        default_template_id: z.uuid().nullable(),
        created_at: NaiveTime,
        updated_at: NaiveTime,
        workspace: z
          .object(
            described(
              {
                id: z.uuid(),
                name: z.string(),
                role: z.string(),
                billing_owner_user_id: z.uuid(),
                is_personal: z.boolean(),
              },
              {
                id: 'Id of the workspace.',
                name: 'Name of the workspace.',
                role: 'Role of the account in the workspace.',
                billing_owner_user_id: 'Id of the account that pays for the workspace.',
                is_personal: 'True if the workspace has one member.',
              },
            ),
          )
          .nullable(),
      },
      {
        id: 'Id of the account.',
        name: 'Name of the account; the part of the address before the @ if none was given.',
        email: 'E-mail address, in lower case.',
        balance:
          'Balance in USD: all amounts that were paid in, granted or received, less charges and transfers.',
        unposted:
          'Use of pods in USD that is metered and not posted yet. The newest balance in the journal less this amount is `balance`.',
        held: 'Part of the balance in USD that is reserved for running pods.',
        available: 'Part of the balance in USD that can be spent: `balance` less `held`.',
        burn_per_hour: "Cost of the account's pods in USD per hour at present.",
        runs_out_at:
          'Time at which the balance will be spent at the present rate (UTC); null if no pod is charged.',
        stripe_customer_id:
          'Id of the account at the payment processor; null before the first payment method.',
        stripe_connect_account_id:
          "Id of the account's payout account at the payment processor; null if there is none.",
        stripe_onboarding_completed: 'True if the payout account may receive payouts.',
        referral_payout_method:
          'How referral shares are paid: to the balance, to a Stripe account, or in crypto.',
        pending_referral_balance:
          'Referral shares in USD that the account earned and that were not paid yet.',
        email_verified: 'True if the address was confirmed. Renting requires it.',
        discord_id: 'Id of the linked chat account; null if none is linked.',
        disable_incoming_connections:
          'True if the account refuses incoming connections. Clients may store the value; it has no effect on pods.',
        avatar_url: 'Address of the avatar image; null for none.',
        company_name: 'Name of the company; null for none.',
        validator_hotkey:
          'ss58 of the validator on whose behalf the account may act; null for none.',
        admin: "True if the account may use the operator's routes.",
        internal_member: "True for accounts of the operator's staff.",
        referral_code:
          'Code with which new accounts name this account as their referrer at sign-up.',
        default_template_id:
          'Id of the template that a rental without a template uses; null for none.',
        created_at: CREATED_AT,
        updated_at: UPDATED_AT,
        workspace: 'Workspace of the account; null, because this marketplace has no workspaces.',
      },
    ),
  )
  .meta({ id: 'User' });
export type User = z.output<typeof User>;

export const CreateUserDto = z
  .object(
    described(
      {
        name: optional(AccountName),
        email: EmailAddress,
        password: NewPassword,
        referral_code: optional(z.string().max(64)),
      },
      {
        name: 'Name of the account, 1 to 100 characters; if absent, the part of the address before the @.',
        email: 'E-mail address. A mail with a token that confirms the address is sent to it.',
        password: 'Password of 8 to 128 characters.',
        referral_code:
          "Referral code of another account, which then receives a share of this account's fees; absent if there is no referrer.",
      },
    ),
  )
  .meta({
    id: 'CreateUserDto',
    example: { email: 'ada@example.com', password: 'correct horse battery', name: 'Ada' },
  });
export type CreateUserDto = z.output<typeof CreateUserDto>;

export const SignUpResponse = z
  .object(
    described(
      {
        msg: z.literal('success'),
        api_key: z.string(),
        signup_credit_granted: z.boolean(),
        user: User,
      },
      {
        msg: 'Always `success`.',
        api_key: "The account's first API key. This answer contains the full key.",
        signup_credit_granted:
          'True if the sign-up credit was granted at once; false if it is granted with the confirmed address.',
        user: 'The new account.',
      },
    ),
  )
  .meta({ id: 'SignUpResponse' });

/** A malformed address gets the same 401 as an unknown address. */
export const LoginUserDto = z
  .object(
    described(
      { email: z.string().max(MAX_EMAIL_CHARS), password: GivenPassword },
      { email: 'E-mail address of the account.', password: 'Password of the account.' },
    ),
  )
  .meta({
    id: 'LoginUserDto',
    example: { email: 'ada@example.com', password: 'correct horse battery' },
  });
export type LoginUserDto = z.output<typeof LoginUserDto>;

export const LoginResponse = z
  .object(
    described(
      { user: User, token: z.string(), expires_at: NaiveTime },
      {
        user: 'The account.',
        token: 'Session token, which the client sends as `Authorization: Bearer …`.',
        expires_at: 'Time at which the token expires (UTC), 7 days after the log-in.',
      },
    ),
  )
  .meta({ id: 'LoginResponse' });

/**
 * Default hours until the removal of a pod, by source of its rental; null removes a default. The service checks the
 * bounds.
 */
const TerminationHours = z.partialRecord(z.enum(SOURCES), z.number().nullable());
const WebAddress = z.url({ protocol: /^https?$/ }).max(2_048);

/** Null clears `company_name`, `avatar_url`, the validator's hotkey and `preference.default_template_id`. */
export const UpdateUserDto = z
  .object(
    described(
      {
        name: optional(AccountName),
        company_name: displayName(200).nullish(),
        avatar_url: WebAddress.nullish(),
        disable_incoming_connections: optional(z.boolean()),
        email: optional(EmailAddress),
        new_password: optional(NewPassword),
        current_password: optional(GivenPassword),
        validator_proof: AccountProof.nullish(),
        preference: optional(
          z.object(
            described(
              {
                default_template_id: Uuid.nullish(),
                default_termination_hours: optional(TerminationHours),
              },
              {
                default_template_id:
                  'Id of the template that a rental without a template uses; null clears it.',
                default_termination_hours:
                  'Hours after which a pod is removed if the rental states no time (1 to 720), by client (`ui`, `cli`, `sdk`, `mcp`, `programmatic`); null removes a default.',
              },
            ),
          ),
        ),
      },
      {
        name: 'New name, 1 to 100 characters; absent or null leaves it unchanged.',
        company_name: 'New company name, 1 to 200 characters; null clears it.',
        avatar_url: 'Address of the avatar image (http or https); null clears it.',
        disable_incoming_connections: 'Stored for clients; absent or null leaves it unchanged.',
        email:
          'New e-mail address. The change needs `current_password` and a session, and the new address counts as unconfirmed. The present address together with `current_password` cancels a change that is not confirmed yet.',
        new_password:
          'New password of 8 to 128 characters. The change needs `current_password` and a session, and ends all other sessions.',
        current_password: 'Present password; required with `email` and `new_password`.',
        validator_proof:
          'Signature that links the account to a validator, so that sessions of the account may act on behalf of the validator; null unlinks it.',
        preference: 'Defaults for rentals; absent or null leaves them unchanged.',
      },
    ),
  )
  .meta({
    id: 'UpdateUserDto',
    example: {
      name: 'Ada',
      company_name: 'Analytical Engines',
      preference: { default_termination_hours: { cli: 24 } },
    },
  });
export type UpdateUserDto = z.output<typeof UpdateUserDto>;

/** Long enough for the addresses of all common chains. */
const CryptoAddress = z
  .string()
  .trim()
  .regex(/^[0-9A-Za-z:._-]{8,128}$/, 'Not an address');
const CryptoNetwork = z
  .string()
  .trim()
  .regex(/^[0-9A-Za-z][0-9A-Za-z ._-]{0,63}$/, 'Not a network');

export const ReferralPayoutMethodUpdateDto = z
  .object(
    described(
      {
        referral_payout_method: ReferralPayoutMethod,
        crypto_address: optional(CryptoAddress),
        crypto_network: optional(CryptoNetwork),
      },
      {
        referral_payout_method:
          'How referral shares are paid from now on. `crypto` needs address and network; `stripe_connect` needs a completed onboarding.',
        crypto_address:
          'Address for payouts in crypto, 8 to 128 characters; required for `crypto`.',
        crypto_network: 'Name of the network of `crypto_address`; required for `crypto`.',
      },
    ),
  )
  .meta({
    id: 'ReferralPayoutMethodUpdateDto',
    example: {
      referral_payout_method: 'crypto',
      crypto_address: '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY',
      crypto_network: 'bittensor',
    },
  });
export type ReferralPayoutMethodUpdateDto = z.output<typeof ReferralPayoutMethodUpdateDto>;

export const UserPreference = z
  .object(
    described(
      {
        default_template_id: z.uuid().nullable(),
        default_template: TemplateResponse.nullable(),
        default_termination_hours: z.record(z.string(), z.number()),
      },
      {
        default_template_id:
          'Id of the template that a rental without a template uses; null for none.',
        default_template: 'Template that a rental without a template uses; null for none.',
        default_termination_hours:
          'Hours after which a pod is removed if the rental states no time, by client.',
      },
    ),
  )
  .meta({ id: 'UserPreference' });
export type UserPreference = z.output<typeof UserPreference>;

const MailedToken = z.string().min(1).max(200);

export const RequestResetPasswordDto = z
  .object(
    described(
      { email: z.string().max(MAX_EMAIL_CHARS) },
      { email: 'E-mail address of the account.' },
    ),
  )
  .meta({ id: 'RequestResetPasswordDto', example: { email: 'ada@example.com' } });

export const ResetPasswordDto = z
  .object(
    described(
      { token: MailedToken, new_password: NewPassword },
      {
        token: 'Token from the mail. It can be used once, within an hour.',
        new_password: 'New password of 8 to 128 characters.',
      },
    ),
  )
  .meta({
    id: 'ResetPasswordDto',
    example: { token: 'token-from-the-mail', new_password: 'battery horse correct' },
  });
export type ResetPasswordDto = z.output<typeof ResetPasswordDto>;

export const ResendVerifyEmailDto = z
  .object(
    described(
      { email: z.string().max(MAX_EMAIL_CHARS) },
      { email: 'E-mail address of the account.' },
    ),
  )
  .meta({ id: 'ResendVerifyEmailDto', example: { email: 'ada@example.com' } });

export const VerifyEmailDto = z
  .object(described({ token: MailedToken }, { token: 'Token from the mail.' }))
  .meta({ id: 'VerifyEmailDto', example: { token: 'token-from-the-mail' } });

export const MessageResponse = z
  .object(
    described(
      { success: z.literal(true), message: z.string() },
      { success: SUCCESS, message: 'Result of the request, as a sentence for the user.' },
    ),
  )
  .meta({ id: 'MessageResponse' });
export type MessageResponse = z.output<typeof MessageResponse>;

export const UserDeleted = z
  .object(
    described(
      { success: z.literal(true), id: z.uuid() },
      { success: SUCCESS, id: 'Id of the account that was deleted.' },
    ),
  )
  .meta({ id: 'UserDeleted' });

export const ClientAddress = z
  .object(
    described(
      { ip: z.string() },
      { ip: 'IP address of the caller, as the central API received it.' },
    ),
  )
  .meta({ id: 'ClientAddress' });
export const UserSearchQuery = z
  .object(
    described(
      { email: z.string().min(1).max(MAX_EMAIL_CHARS) },
      { email: 'E-mail address to find. Only an exact match counts.' },
    ),
  )
  .meta({ example: { email: 'ada@example.com' } });
export const UserSearchResponse = z
  .object(described({ exists: z.boolean() }, { exists: 'True if an account has this address.' }))
  .meta({ id: 'UserSearchResponse' });
